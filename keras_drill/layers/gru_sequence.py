"""The GRU recurrence over a sequence, with hand-written gradients.

Shape letters: T time steps, B sequences, d input features, H units. All sequences are time-major.
Names that begin with `d_` or `d` are gradients of the loss; `delta` is the gradient for the gates
before their activations.
"""

import keras
from keras import ops

from keras_drill.layers.time_loop import (
    matmul_rows,
    outer_rows,
    previous_steps,
    scan_steps,
    select,
)
from keras_drill.types import Tensor


def gru_cell(x_gates, h_gates, h):
    """Computes one time step.

    Args:
        x_gates: `x W + b_0`, the input's part of the gates before their activations, `[B, 3H]`.
        h_gates: `h U + b_1`, the state's part, `[B, 3H]`.
        h: The state before the step, `[B, H]`.

    Returns:
        The tuple `(z, r, n, h_n)`, where `h_n` is the state's part of n, and the new h. All are
        `[B, H]`.
    """
    x_z, x_r, x_n = ops.split(x_gates, 3, axis=-1)
    h_z, h_r, h_n = ops.split(h_gates, 3, axis=-1)
    z, r = ops.sigmoid(x_z + h_z), ops.sigmoid(x_r + h_r)
    n = ops.tanh(x_n + r * h_n)
    return (z, r, n, h_n), z * h + (1 - z) * n


def gru_cell_gradient(gates, previous_h, dh):
    """Computes the gradients of `gru_cell`.

    Args:
        gates: The first result of `gru_cell`, concatenated to `[B, 4H]`.
        previous_h: The state before the step, `[B, H]`.
        dh: The gradient of the loss with respect to the new state, `[B, H]`.

    Returns:
        - `[B, 4H]`, the gradients with respect to z, r, the state's part of n, and the input's part
          of n, before their activations.
        - `[B, H]`, the part of the gradient with respect to `previous_h` that does not pass through
          the gates.
    """
    z, r, n, h_n = ops.split(gates, 4, axis=-1)
    delta_n = dh * (1 - z) * (1 - n * n)
    delta = ops.concatenate(
        [
            dh * (previous_h - n) * z * (1 - z),
            delta_n * h_n * r * (1 - r),
            delta_n * r,
            delta_n,
        ],
        axis=-1,
    )
    return delta, dh * z


def shares(delta):
    """Splits the first result of `gru_cell_gradient` into the gradients for `x W` and for `h U`.

    Args:
        delta: `[..., 4H]`.

    Returns:
        The gradients for the input's and for the state's part of the gates, `[..., 3H]` each.
    """
    units = delta.shape[-1] // 4
    of_input = ops.concatenate([delta[..., : 2 * units], delta[..., 3 * units :]], axis=-1)
    return of_input, delta[..., : 3 * units]


def gru_sequence(x, kernel, recurrent_kernel, bias, h0, mask=None, store_gates: bool = True):
    """Runs a GRU over `x` and returns every output and the last state.

        x_z, x_r, x_n = split(x_t W + b_0)               the gate order of keras.layers.GRU
        h_z, h_r, h_n = split(h_{t-1} U + b_1)           reset_after=True
        z = σ(x_z + h_z),    r = σ(x_r + h_r),    n = tanh(x_n + r ⊙ h_n)
        h_t = z ⊙ h_{t-1} + (1 − z) ⊙ n

    Masked steps do not change the state. The loop, the gradients and the dtypes are arranged as in
    `lstm_sequence`.

    Args:
        x: `[T, B, d]`.
        kernel, recurrent_kernel, bias: `[d, 3H]`, `[H, 3H]`, `[2, 3H]`, in the dtype of `x`.
        h0: `[B, H]`, the state before the first step.
        mask: `None`, or `[T, B]` bool, False for masked steps.
        store_gates: whether to store the gates for the hand-written gradients.

    Returns:
        `(outputs [T, B, H], (h [B, H],))`, in the dtype of `h0`.
    """
    masks = () if mask is None else (ops.expand_dims(mask, -1),)  # [T, B, 1]

    if not store_gates:
        (h,) = _forward(x, kernel, recurrent_kernel, bias, h0, masks, store_gates=False)
        return h, (h[-1],)

    @ops.custom_gradient
    def run(x, kernel, recurrent_kernel, bias, h0):
        h, gates = _forward(x, kernel, recurrent_kernel, bias, h0, masks, store_gates=True)

        def grad(d_outputs):
            previous_h = previous_steps(h0, h)
            dh0, delta = _backward(recurrent_kernel, gates, previous_h, d_outputs, masks)
            dtype = keras.backend.standardize_dtype(x.dtype)
            x_delta, h_delta = shares(delta)
            return (
                matmul_rows(x_delta, ops.transpose(kernel)),
                outer_rows(x, x_delta),
                outer_rows(ops.cast(previous_h, dtype), h_delta),
                ops.stack([ops.sum(x_delta, axis=(0, 1)), ops.sum(h_delta, axis=(0, 1))]),
                dh0,
            )

        return h, grad

    outputs = run(x, kernel, recurrent_kernel, bias, h0)
    return outputs, (outputs[-1],)


def _forward(x, kernel, recurrent_kernel, bias, h0, masks, store_gates: bool):
    """Returns h `[T, B, H]` after every step and, with `store_gates`, the gates `[T, B, 4H]`."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    cell_dtype = keras.backend.standardize_dtype(h0.dtype)

    def step(carry, inputs):
        h = carry[0]
        x_kernel, *mask = inputs
        x_gates = ops.cast(x_kernel + bias[0], cell_dtype)  # [B, 3H]
        h_gates = ops.matmul(ops.cast(h, dtype), recurrent_kernel) + bias[1]
        gates, new_h = gru_cell(x_gates, ops.cast(h_gates, cell_dtype), h)
        carry = (select(mask, new_h, h),)
        if store_gates:
            carry += (ops.cast(ops.concatenate(gates, axis=-1), dtype),)
        return carry, carry

    carry: tuple[Tensor, ...] = (h0,)
    if store_gates:
        carry += (ops.zeros((ops.shape(h0)[0], 4 * h0.shape[-1]), dtype),)
    return scan_steps(step, carry, (matmul_rows(x, kernel), *masks))[1]


def _backward(recurrent_kernel, gates, previous_h, d_outputs, masks):
    """Runs the backward loop.

    Args:
        recurrent_kernel: `[H, 3H]`.
        gates: `[T, B, 4H]`, from `_forward`.
        previous_h: `[T, B, H]`, the state before each step.
        d_outputs: `[T, B, H]`, the gradient for h after every step.
        masks: A tuple of the mask `[T, B, 1]`, or `()`.

    Returns:
        The gradient for h0, `[B, H]`, and the first results of `gru_cell_gradient` for all steps,
        `[T, B, 4H]`.
    """
    cell_dtype = keras.backend.standardize_dtype(previous_h.dtype)
    transposed = ops.transpose(recurrent_kernel)

    def step(carry, inputs):
        dh_next, _ = carry
        d_output, gates, previous_h, *mask = inputs
        dh = dh_next + d_output
        delta, dh_direct = gru_cell_gradient(ops.cast(gates, cell_dtype), previous_h, dh)
        delta = ops.cast(select(mask, delta, ops.zeros_like(delta)), recurrent_kernel.dtype)
        dh_previous = ops.matmul(shares(delta)[1], transposed)
        dh_previous = ops.cast(dh_previous, cell_dtype) + dh_direct
        carry = (select(mask, dh_previous, dh), delta)
        return carry, carry

    (dh0, _), (_, delta) = scan_steps(
        step,
        (ops.zeros_like(previous_h[0]), ops.zeros_like(gates[0])),
        (d_outputs, gates, previous_h, *masks),
        reverse=True,
    )
    return dh0, delta
