from typing import Any

import keras
from keras import ops

from keras_drill.layers.cudnn import cudnn_lstm
from keras_drill.layers.lstm_sequence import lstm_cell, lstm_cell_gradient, lstm_sequence
from keras_drill.layers.recurrent import Recurrent, RecurrentWeights
from keras_drill.types import Shape, Tensor, Tensors


@keras.saving.register_keras_serializable(package="keras_drill")
class LSTM(Recurrent):
    """Long short-term memory that is fast enough to train language models on a CPU.

        i, f, g, o = split(x_t W + h_{t-1} U + b)
        c_t = σ(f) ⊙ c_{t-1} + σ(i) ⊙ tanh(g)
        h_t = σ(o) ⊙ tanh(c_t)

    σ is the sigmoid function, ⊙ the element-wise product, x_t the input, h_t the output and c_t the
    cell state. The weights W, U and b are those of `keras.layers.LSTM`, in the same order and
    layout, so they can be copied from either layer to the other. The computation differs:

    - `x W` is one product for all time steps.
    - With `training=True`, the gates i, f, g and o are stored, and the gradients are written by
      hand. Otherwise no gates are stored, and the backend differentiates the recurrence.
    - Under mixed precision, states and gates are computed in float32.

    With TensorFlow on a GPU, and without a mask, the layer uses cuDNN. Under XLA the layer never
    uses cuDNN, since XLA cannot compile cuDNN's operations. Under mixed precision, cuDNN computes
    states and gates in the compute dtype, instead of float32.

    Input shape: `[B, T, d]` (batch, time, features), or `[T, B, d]` with `time_major=True`.

    Output shape: `[B, H]`; with `return_sequences=True`, `[B, T, H]`, or `[T, B, H]` with
    `time_major=True`. With `return_state=True` a tuple: the output, the last h `[B, H]`, the last c
    `[B, H]`.

    Call arguments:
        inputs: Tensor of the input shape.
        initial_state: `None`, or `[h, c]`, the states `[B, H]` before the first step. With an
            initial state, a stateful layer neither reads nor writes its carried state.
        mask: `None`, or bool `[B, T]` (`[T, B]` with `time_major=True`). Steps whose mask is false
            do not change the state.
        training: Whether to apply `weight_dropout`.

    Args:
        units: Number of units H.
        return_sequences: Whether to return the outputs of all time steps, not only the last.
            Default: `False`.
        return_state: Whether to return the state as well. Default: `False`.
        stateful: Whether each batch starts from the last state of the previous batch. This needs a
            static batch size. `reset_state()` sets the state to zero. Default: `False`.
        time_major: Whether time is the first axis of inputs, outputs and mask. Default: `False`.
        weight_dropout: Probability of dropping an entry of the recurrent matrix U in training. All
            steps of a batch share the mask. Default: 0.
        unit_forget_bias: Whether the initial bias of the forget gate is 1.
        kernel_initializer, recurrent_initializer, bias_initializer: Initializers of W, U, b.
            Defaults: "glorot_uniform", "orthogonal", "zeros".
        kernel_regularizer, recurrent_regularizer, bias_regularizer: Regularizers of W, U, b.
            Defaults: `None`.
        seed: Integer seed for the dropped weights, or `None` (default) for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> layer = keras_drill.layers.LSTM(7, return_sequences=True, return_state=True)
    >>> outputs, h, c = layer(keras.ops.ones((2, 5, 3)))
    >>> [tuple(tensor.shape) for tensor in (outputs, h, c)]
    [(2, 5, 7), (2, 7), (2, 7)]

    References:
        - [Hochreiter and Schmidhuber, 1997](https://www.bioinf.jku.at/publications/older/2604.pdf)
        - [Merity et al., 2018](https://arxiv.org/abs/1708.02182)
    """

    num_gates = 4
    num_states = 2

    def __init__(self, units: int, unit_forget_bias: bool = True, **kwargs: Any):
        super().__init__(units, **kwargs)
        self.unit_forget_bias = unit_forget_bias

    def bias_shape(self) -> tuple[int, ...]:
        return (4 * self.units,)

    def initialize_bias(self, shape: Shape, dtype: str | None = None) -> Tensor:
        bias = super().initialize_bias(shape, dtype)
        if not self.unit_forget_bias:
            return bias
        ones = ops.ones((self.units,), dtype)
        return ops.concatenate([bias[: self.units], ones, bias[2 * self.units :]])

    def run_sequence(
        self,
        x: Tensor,
        weights: RecurrentWeights,
        state: Tensors,
        mask: Tensor | None,
        training: bool,
    ) -> tuple[Tensor, Tensors]:
        h, c = state
        if self.uses_cudnn and mask is None:
            return cudnn_lstm(x, *weights, h, c)
        return lstm_sequence(x, *weights, h, c, mask, store_gates=training)

    def run_step(
        self, x_gates: Tensor, recurrent_kernel: Tensor, bias: Tensor, state: Tensors
    ) -> tuple[list[Tensor], Tensor]:
        h, c = state
        z = x_gates + bias + ops.matmul(ops.cast(h, x_gates.dtype), recurrent_kernel)
        gates, h, c = lstm_cell(ops.cast(z, self.state_dtype), c)
        return [h, c], ops.concatenate(gates, axis=-1)

    def step_gradient(
        self, gates: Tensor, state: Tensors, previous_state: Tensors, d_state: Tensors
    ) -> tuple[Tensor, list[Tensor]]:
        delta, dc = lstm_cell_gradient(gates, state[1], previous_state[1], *d_state)
        return delta, [ops.zeros_like(d_state[0]), dc]

    def gate_shares(self, delta: Tensor) -> tuple[Tensor, Tensor]:
        return delta, delta

    def bias_gradient(self, x_delta: Tensor, h_delta: Tensor) -> Tensor:
        return ops.sum(x_delta, axis=(0, 1))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "unit_forget_bias": self.unit_forget_bias}
