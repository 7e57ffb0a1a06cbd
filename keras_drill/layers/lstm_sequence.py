"""The LSTM recurrence over a sequence, with hand-written gradients.

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


def lstm_cell(z, c):
    """Computes one time step.

    Args:
        z: `[B, 4H]`, the gates before their activations.
        c: `[B, H]`, the cell state before the step.

    Returns:
        A tuple of the four activated gates, the new h, and the new c. All are `[B, H]`.
    """
    i, f, g, o = ops.split(z, 4, axis=-1)
    i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
    c = f * c + i * g
    return (i, f, g, o), o * ops.tanh(c), c


def lstm_cell_gradient(gates, c, previous_c, dh, dc):
    """Computes the gradients of `lstm_cell`.

    Args:
        gates: `[B, 4H]`, the activated gates.
        c: `[B, H]`, the cell state after the step.
        previous_c: `[B, H]`, the cell state before the step.
        dh, dc: `[B, H]`, the gradients for h and c after the step.

    Returns:
        The gradients for the gates before their activations, `[B, 4H]`, and for `previous_c`.
    """
    i, f, g, o = ops.split(gates, 4, axis=-1)
    tanh_c = ops.tanh(c)
    dc = dc + dh * o * (1 - tanh_c * tanh_c)
    delta = ops.concatenate(
        [
            dc * g * i * (1 - i),
            dc * previous_c * f * (1 - f),
            dc * i * (1 - g * g),
            dh * tanh_c * o * (1 - o),
        ],
        axis=-1,
    )  # [B, 4H]
    return delta, dc * f


def lstm_sequence(x, kernel, recurrent_kernel, bias, h0, c0, mask=None, store_gates: bool = True):
    """Runs an LSTM over `x` and returns every output and the last state.

        i, f, g, o = split(x_t W + h_{t-1} U + b)               the gate order of keras.layers.LSTM
        c_t = σ(f) ⊙ c_{t-1} + σ(i) ⊙ tanh(g)
        h_t = σ(o) ⊙ tanh(c_t)

    Masked steps do not change the state: `h_t` repeats `h_{t-1}`.

    The only matrix product inside the time loop is `h U`. Let δ_t be the gradient for the four
    gates before their activations. The only matrix product of the backward loop is `δ_t U^T`. The
    other gradients,

        dW = Σ_t x_t^T δ_t,    dU = Σ_t h_{t-1}^T δ_t,    db = Σ_t δ_t,    dx_t = δ_t W^T,

    are computed after the loop, for all T·B rows at once. Matrix products have the dtype of `x`.
    The cell state and element-wise operations have the dtype of `c0` (float32 under mixed
    precision).

    Args:
        x: `[T, B, d]`.
        kernel, recurrent_kernel, bias: `[d, 4H]`, `[H, 4H]`, `[4H]`, in the dtype of `x`.
        h0, c0: `[B, H]`, the state before the first step.
        mask: `None`, or `[T, B]` bool, False for masked steps.
        store_gates: whether to store the gates for the hand-written gradients. Without them the
            function needs a third of the memory, and the backend differentiates the loop itself.

    Returns:
        `(outputs [T, B, H], (h [B, H], c [B, H]))`, all in the dtype of `c0`.
    """
    masks = () if mask is None else (ops.expand_dims(mask, -1),)  # [T, B, 1]

    if not store_gates:
        h, c = _forward(x, kernel, recurrent_kernel, bias, h0, c0, masks, store_gates=False)
        return h, (h[-1], c[-1])

    @ops.custom_gradient
    def run(x, kernel, recurrent_kernel, bias, h0, c0):
        h, c, gates = _forward(x, kernel, recurrent_kernel, bias, h0, c0, masks, store_gates=True)

        def grad(*upstream):
            # TensorFlow passes one argument per output, JAX one tuple.
            d_outputs, dc_last = upstream if len(upstream) == 2 else upstream[0]
            dh0, dc0, delta = _backward(
                recurrent_kernel, gates, c, previous_steps(c0, c), d_outputs, dc_last, masks
            )
            dtype = keras.backend.standardize_dtype(x.dtype)
            return (
                matmul_rows(delta, ops.transpose(kernel)),
                outer_rows(x, delta),
                outer_rows(ops.cast(previous_steps(h0, h), dtype), delta),
                ops.sum(delta, axis=(0, 1)),
                dh0,
                dc0,
            )

        return (h, c[-1]), grad

    outputs, c_last = run(x, kernel, recurrent_kernel, bias, h0, c0)
    return outputs, (outputs[-1], c_last)


def _forward(x, kernel, recurrent_kernel, bias, h0, c0, masks, store_gates: bool):
    """Returns h and c `[T, B, H]` after every step and, with `store_gates`, the gates.

    The gates are `[T, B, 4H]`.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    cell_dtype = keras.backend.standardize_dtype(c0.dtype)

    def step(carry, inputs):
        h, c = carry[:2]
        x_kernel, *mask = inputs
        z = x_kernel + bias + ops.matmul(ops.cast(h, dtype), recurrent_kernel)  # [B, 4H]
        gates, new_h, new_c = lstm_cell(ops.cast(z, cell_dtype), c)
        carry = (select(mask, new_h, h), select(mask, new_c, c))
        if store_gates:
            carry += (ops.cast(ops.concatenate(gates, axis=-1), dtype),)
        return carry, carry

    carry: tuple[Tensor, ...] = (h0, c0)
    if store_gates:
        carry += (ops.zeros((ops.shape(h0)[0], bias.shape[0]), dtype),)
    return scan_steps(step, carry, (matmul_rows(x, kernel), *masks))[1]


def _backward(recurrent_kernel, gates, c, previous_c, d_outputs, dc_last, masks):
    """Runs the backward loop.

    Args:
        recurrent_kernel: `[H, 4H]`.
        gates: `[T, B, 4H]`, from `_forward`.
        c, previous_c: `[T, B, H]`, the cell state after and before each step.
        d_outputs: `[T, B, H]`, the gradient for h after every step.
        dc_last: `[B, H]`, the gradient for the last c.
        masks: A tuple of the mask `[T, B, 1]`, or `()`.

    Returns:
        The gradients for h0 and c0, `[B, H]`, and for the gates before their activations,
        `[T, B, 4H]`.
    """
    cell_dtype = keras.backend.standardize_dtype(c.dtype)
    transposed = ops.transpose(recurrent_kernel)

    def step(carry, inputs):
        dh_next, dc_next, _ = carry
        d_output, gates, c, previous_c, *mask = inputs
        dh = dh_next + d_output
        delta, dc_previous = lstm_cell_gradient(
            ops.cast(gates, cell_dtype), c, previous_c, dh, dc_next
        )
        delta = ops.cast(select(mask, delta, ops.zeros_like(delta)), recurrent_kernel.dtype)
        dh_previous = ops.cast(ops.matmul(delta, transposed), cell_dtype)
        carry = (select(mask, dh_previous, dh), select(mask, dc_previous, dc_next), delta)
        return carry, carry

    (dh0, dc0, _), (_, _, delta) = scan_steps(
        step,
        (ops.zeros_like(dc_last), dc_last, ops.zeros_like(gates[0])),
        (d_outputs, gates, c, previous_c, *masks),
        reverse=True,
    )
    return dh0, dc0, delta
