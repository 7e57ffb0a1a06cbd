"""The LSTM recurrence over a sequence, with a hand-written derivative.

T time steps, B sequences, d input features, H units. Everything here is time-major.
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
    """One time step from the gates `z` `[B, 4H]` before their activations and the cell state `c`.

    Returns:
        The four activated gates, the new h and the new c, `[B, H]` each.
    """
    i, f, g, o = ops.split(z, 4, axis=-1)
    i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
    c = f * c + i * g
    return (i, f, g, o), o * ops.tanh(c), c


def lstm_cell_gradient(gates, c, previous_c, dh, dc):
    """The derivative of `lstm_cell`, from its activated `gates` `[B, 4H]` and its results.

    Returns:
        Derivatives for the gates before their activations `[B, 4H]`, and for `previous_c`.
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

    Where `mask` is false the state is carried through and `h_t` repeats `h_{t-1}`.

    Only `h U` runs inside the time loop. With δ_t the derivative with respect to the four gates
    before their activations, the backward loop only does `δ_t U^T`, and afterwards

        dW = Σ_t x_t^T δ_t,    dU = Σ_t h_{t-1}^T δ_t,    db = Σ_t δ_t,    dx_t = δ_t W^T

    are one product each over all T·B rows. Products run in the dtype of `x`; the cell state and
    everything element by element in the dtype of `c0` (float32 under mixed precision).

    Args:
        x: `[T, B, d]`.
        kernel, recurrent_kernel, bias: `[d, 4H]`, `[H, 4H]`, `[4H]`, in the dtype of `x`.
        h0, c0: `[B, H]`, the state before the first step.
        mask: `None`, or `[T, B]` bool.
        store_gates: keep the gates for the hand-written derivative. Without them the memory is a
            third, and a derivative is the backend's own of the loop.

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
    """h and c `[T, B, H]` after every step, and the gates `[T, B, 4H]` if asked."""
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
    """From the derivatives for every h and the last c, those for h0 and c0 `[B, H]`, and for the
    gates before their activations `[T, B, 4H]`."""
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
