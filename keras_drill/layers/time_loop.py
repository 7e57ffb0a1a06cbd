"""Shared parts of the recurrences of the LSTM and the GRU. Everything is time-major."""

import keras
from keras import ops


def matmul_rows(x, matrix):
    """`x @ matrix` for `x` `[T, B, m]` and `matrix` `[m, n]`, as one product of T·B rows."""
    rows = ops.matmul(ops.reshape(x, (-1, matrix.shape[0])), matrix)
    return ops.reshape(rows, (*ops.shape(x)[:-1], matrix.shape[1]))  # [T, B, n]


def outer_rows(x, delta):
    """`Σ_{t,b} x[t, b]^T delta[t, b]` for `[T, B, m]` and `[T, B, n]`, as one product `[m, n]`."""
    x = ops.reshape(x, (-1, x.shape[-1]))
    return ops.matmul(ops.transpose(x), ops.reshape(delta, (-1, delta.shape[-1])))


def previous_steps(initial, steps):
    """`[initial, steps[0], ..., steps[T - 2]]`: the state each step started from."""
    return ops.concatenate([initial[None], steps[:-1]], axis=0)


def select(mask, if_true, if_false):
    """`where(mask, if_true, if_false)` with the mask in a list; without a mask, `if_true`."""
    return ops.where(mask[0], if_true, if_false) if mask else if_true


def scan_steps(step, carry, inputs, reverse=False):
    """`ops.scan` over nested arrays `[T, ...]`, of which T need not be known when compiled."""
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
