"""Functions shared by the time loops of the LSTM and the GRU. All sequences are time-major."""

import keras
from keras import ops


def matmul_rows(x, matrix):
    """Returns `x @ matrix`, for `[T, B, m]` and `[m, n]`, as one product of T·B rows."""
    rows = ops.matmul(ops.reshape(x, (-1, matrix.shape[0])), matrix)
    return ops.reshape(rows, (*ops.shape(x)[:-1], matrix.shape[1]))  # [T, B, n]


def outer_rows(x, delta):
    """Returns `Σ_{t,b} x[t, b]^T delta[t, b]`, `[m, n]`, by one product.

    Args:
        x: `[T, B, m]`.
        delta: `[T, B, n]`.
    """
    x = ops.reshape(x, (-1, x.shape[-1]))
    return ops.matmul(ops.transpose(x), ops.reshape(delta, (-1, delta.shape[-1])))


def previous_steps(initial, steps):
    """Returns the state before each step: `[initial, steps[0], ..., steps[T - 2]]`."""
    return ops.concatenate([initial[None], steps[:-1]], axis=0)


def select(mask, if_true, if_false):
    """Selects entries by a mask, if there is one.

    Args:
        mask: A list of one boolean tensor, or an empty list if there is no mask.
        if_true: Tensor for steps that are not masked.
        if_false: Tensor for masked steps, whose mask is False.

    Returns:
        `where(mask[0], if_true, if_false)`, or `if_true` without a mask.
    """
    return ops.where(mask[0], if_true, if_false) if mask else if_true


def scan_steps(step, carry, inputs, reverse=False):
    """Runs `ops.scan` over nested arrays `[T, ...]`, also if T is unknown while tracing."""
    first = keras.tree.flatten(inputs)[0]
    if first.shape[0] is not None:
        return ops.scan(step, carry, inputs, reverse=reverse)
    # With several arrays of unknown length keras.ops.scan fails on TensorFlow.
    return ops.scan(
        lambda carry, t: step(carry, keras.tree.map_structure(lambda x: x[t], inputs)),
        carry,
        ops.arange(ops.shape(first)[0]),
        reverse=reverse,
    )
