import keras
from keras import ops

from keras_drill.layers.cudnn import cudnn_gru
from keras_drill.layers.gru_sequence import (
    gru_cell,
    gru_cell_gradient,
    gru_sequence,
    shares,
)
from keras_drill.layers.recurrent import Recurrent, RecurrentWeights
from keras_drill.types import Tensor, Tensors


@keras.saving.register_keras_serializable(package="keras_drill")
class GRU(Recurrent):
    """Gated recurrent unit with the fast time loop of `keras_drill.layers.LSTM`.

        z = σ(x W_z + b_z + h U_z + b'_z),    r = σ(x W_r + b_r + h U_r + b'_r)
        n = tanh(x W_n + b_n + r ⊙ (h U_n + b'_n))
        h_t = z ⊙ h_{t-1} + (1 − z) ⊙ n

    σ is the sigmoid function, ⊙ the element-wise product, x_t the input and h_t the output. In the
    first three formulas, x is x_t and h is h_{t-1}. The weights W, U, b and b' are those of
    `keras.layers.GRU(reset_after=True)`, in the same order and layout.

    Input shape: `[B, T, d]` (batch, time, features), or `[T, B, d]` with `time_major=True`.

    Output shape: `[B, H]`; with `return_sequences=True`, `[B, T, H]`, or `[T, B, H]` with
    `time_major=True`. With `return_state=True` a tuple: the output and the last h `[B, H]`.

    Call arguments:
        inputs: Tensor of the input shape.
        initial_state: `None`, or `[h]`, the state `[B, H]` before the first step. With an initial
            state, a stateful layer neither reads nor writes its carried state.
        mask: `None`, or bool `[B, T]` (`[T, B]` with `time_major=True`). Steps whose mask is false
            do not change the state.
        training: Whether to apply `weight_dropout`.

    Args:
        units: Number of units H.
        **kwargs: Other arguments of `keras_drill.layers.LSTM`, except `unit_forget_bias`.

    Example:

    >>> layer = keras_drill.layers.GRU(7, return_sequences=True)
    >>> tuple(layer(keras.ops.ones((2, 5, 3))).shape)
    (2, 5, 7)

    References:
        - [Cho et al., 2014](https://arxiv.org/abs/1406.1078)
    """

    num_gates = 3
    num_states = 1

    def bias_shape(self) -> tuple[int, ...]:
        return (2, 3 * self.units)

    def run_sequence(
        self,
        x: Tensor,
        weights: RecurrentWeights,
        state: Tensors,
        mask: Tensor | None,
        training: bool,
    ) -> tuple[Tensor, Tensors]:
        (h,) = state
        if self.uses_cudnn and mask is None:
            return cudnn_gru(x, *weights, h)
        return gru_sequence(x, *weights, h, mask, store_gates=training)

    def run_step(
        self, x_gates: Tensor, recurrent_kernel: Tensor, bias: Tensor, state: Tensors
    ) -> tuple[list[Tensor], Tensor]:
        (h,) = state
        h_gates = ops.matmul(ops.cast(h, x_gates.dtype), recurrent_kernel) + bias[1]
        gates, h = gru_cell(
            ops.cast(x_gates + bias[0], self.state_dtype), ops.cast(h_gates, self.state_dtype), h
        )
        return [h], ops.concatenate(gates, axis=-1)

    def step_gradient(
        self, gates: Tensor, state: Tensors, previous_state: Tensors, d_state: Tensors
    ) -> tuple[Tensor, list[Tensor]]:
        delta, dh = gru_cell_gradient(gates, *previous_state, *d_state)
        return delta, [dh]

    def gate_shares(self, delta: Tensor) -> tuple[Tensor, Tensor]:
        return shares(delta)

    def bias_gradient(self, x_delta: Tensor, h_delta: Tensor) -> Tensor:
        return ops.stack([ops.sum(x_delta, axis=(0, 1)), ops.sum(h_delta, axis=(0, 1))])
