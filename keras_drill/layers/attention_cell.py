"""Attention around any cell of a `keras.layers.RNN`.

Shape letters: B sequences, S positions of the source, H units of the cell, d features of the
output.
"""

from typing import Any

import keras
from keras import ops

from keras_drill.layers.inner_layers import deserialize_layers, serialize_layer
from keras_drill.types import Activation, Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class AttentionCell(keras.layers.Layer):
    """A recurrent cell with attention to a source. Its output is a part of its next input.

        y_t, s_t = cell([x_t; a_{t-1}], s_{t-1})
        a_t = activation(W [context_t; y_t]),    context_t = attention(y_t, source),    a_0 = 0

    x_t is the input, y_t and s_t are the output and the states of the inner `cell`, W is a weight
    matrix, and [...; ...] is a concatenation. The output of this cell is a_t.

    Use this cell in `AttentionRNN`, which takes the source and calls `start`. In a
    `keras.layers.RNN`, pass the output of `start` as `initial_state`. With LSTM or GRU cells,
    `keras_drill.models.RecurrentEncoderDecoder` with `input_feeding=True` is a faster alternative.

    Shape letters: B sequences, S positions of the source (memory) of width m, d_x input features, d
    output features.

    Call arguments:
        inputs: x_t `[B, d_x]`.
        states: A list of tensors: the inner cell's states, a_{t-1} `[B, d]`, and the tensors that
            `attention.project` returned for the source.

    Returns:
        a_t `[B, d]`, and the list of states after the step, in the same order.

    Args:
        cell: Any Keras cell (`keras.layers.LSTMCell`, `GRUCell`, `StackedRNNCells`, ...) without
            dropout. `keras.layers.RNN` resets the dropout masks of its own cell, but not of a cell
            inside that cell. For dropout, put `keras_drill.layers.VariationalDropout`, whose mask
            is the same at all steps, before or after the RNN.
        attention: `keras_drill.layers.Attention` without a window, or `MultiHeadSourceAttention`.
        size: Width d of the output.
        activation: Activation of a_t. Luong et al. use tanh. tensorflow-addons' `AttentionWrapper`
            uses no activation.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> attention = keras_drill.layers.Attention()
    >>> cell = keras_drill.layers.AttentionCell(keras.layers.GRUCell(5), attention, size=3)
    >>> states = cell.start(keras.ops.ones((2, 7, 11)))
    >>> rnn = keras.layers.RNN(cell, return_sequences=True)
    >>> tuple(rnn(keras.ops.ones((2, 4, 13)), initial_state=states).shape)
    (2, 4, 3)

    References:
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025), section 3.3
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        attention: keras.layers.Layer,
        size: int,
        activation: Activation = "tanh",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for inner in getattr(cell, "cells", [cell]):
            if getattr(inner, "dropout", 0) or getattr(inner, "recurrent_dropout", 0):
                raise ValueError(
                    "`cell` must have no dropout, because Keras does not reset the masks of a cell "
                    "inside another cell. Put keras_drill.layers.VariationalDropout before or "
                    f"after the RNN instead. Received: cell={cell!r}"
                )
        if getattr(attention, "window", None) is not None:
            raise ValueError(
                "`attention` must have no window, because a cell does not know its position in the "
                f"target. Use `window=None`. Received: attention with window={attention.window!r}"
            )
        self.cell = cell
        self.attention = attention
        self.size = size
        self.activation = keras.activations.get(activation)
        self.dense = keras.layers.Dense(
            size, activation, use_bias=False, dtype=self.dtype_policy, name="dense"
        )
        self._names: list[str] = []  # of the projected source's tensors

    @property
    def state_size(self) -> list[int]:
        """Sizes of the states that change from step to step: the inner cell's states, and a_t."""
        return [*keras.tree.flatten(self.cell.state_size), self.size]

    @property
    def output_size(self) -> int:
        """Width of the output, d."""
        return self.size

    def build(self, inputs_shape: tuple[int | None, int]) -> None:
        if not self.cell.built:
            self.cell.build((inputs_shape[0], inputs_shape[-1] + self.size))

    def build_attention(self, memory_shape: Shape) -> None:
        """Builds the attention for a source of the shape `memory_shape`, `[B, S, m]`.

        `start` calls this method. Call it yourself only to create the weights earlier.
        """
        if self._names:
            return
        size = getattr(self.cell, "output_size", None)
        size = keras.tree.flatten(self.cell.state_size)[-1] if size is None else size
        self.attention.build((None, None, size), memory_shape)
        memory = keras.KerasTensor((None, None, memory_shape[-1]), self.compute_dtype)
        source = self.attention.project(memory, keras.KerasTensor((None, None), "bool"))
        query = keras.KerasTensor((None, None, size), self.compute_dtype)
        context, _ = self.attention.compute_output_spec(query, source)
        self.dense.build((None, context.shape[-1] + size))
        self._names = sorted(source)

    def get_initial_state(self, batch_size: int | None = None) -> list:
        raise ValueError(
            "`initial_state` must be the output of the cell's `start(memory)`. Use AttentionRNN, "
            "which calls `start`, or pass `initial_state`. Received: initial_state=None"
        )

    def start(self, memory: Tensor, mask: Tensor | None = None, states: Any = None) -> list:
        """Prepares the source, and returns the initial state of an RNN over this cell.

        Args:
            memory: The source, `[B, S, m]`.
            mask: `None` or bool `[B, S]`, False for positions of the source to ignore.
            states: The inner cell's initial states, for example an encoder's last states; `None`
                is zeros.

        Returns:
            A list of tensors, the argument `initial_state` of the call of a `keras.layers.RNN`.
        """
        self.build_attention(memory.shape)
        batch_size = ops.shape(memory)[0]
        if states is None:
            states = self.cell.get_initial_state(batch_size)
        source = self.attention.project(memory, mask)
        tensors = [
            *keras.tree.flatten(states),
            ops.zeros((batch_size, self.size)),
            *[source[name] for name in self._names],
        ]
        return [ops.cast(tensor, self.compute_dtype) for tensor in tensors]

    def call(self, inputs: Tensor, states: Any) -> tuple[Any, list]:
        count = len(self.state_size)
        *cell_states, fed = states[:count]
        source = dict(zip(self._names, states[count:], strict=True))
        source["mask"] = source["mask"] > 0  # Keras casts states to one type
        cell_states = keras.tree.pack_sequence_as(self.cell.state_size, cell_states)
        output, cell_states = self.cell(ops.concatenate([inputs, fed], axis=-1), cell_states)
        contexts, _ = self.attention(output[:, None], source)
        a = self.dense(ops.concatenate([contexts[:, 0], output], axis=-1))
        return a, [*keras.tree.flatten(cell_states), a, *states[count:]]

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "cell": serialize_layer(self.cell),
            "attention": serialize_layer(self.attention),
            "size": self.size,
            "activation": keras.activations.serialize(self.activation),
        }

    @classmethod
    def from_config(cls, config: dict) -> "AttentionCell":
        return cls(**deserialize_layers(config, "cell", "attention"))


@keras.saving.register_keras_serializable(package="keras_drill")
class AttentionRNN(keras.layers.RNN):
    """A `keras.layers.RNN` over an `AttentionCell`. The call takes the source as an argument.

    Shape letters: B sequences, T steps of d_x features, S positions of the source (memory) of
    width m, H units of the inner cell, d output features.

    Call arguments:
        sequences: `[B, T, d_x]`.
        memory: The source `[B, S, m]`.
        sequences_mask: `None` or bool `[B, T]`, False for steps to ignore, which do not change the
            states. Must be `None` on JAX.
        memory_mask: `None` or bool `[B, S]`, False for positions of the source to ignore.
        initial_state: List of the inner cell's initial states `[B, H]`, for example an encoder's
            last states; `None` is zeros.
        training: Whether the layer is called for training.

    Output shape: `[B, d]`, or `[B, T, d]` with `return_sequences=True`. With `return_state=True`
    this output is followed by the inner cell's states, the last output `[B, d]`, and the tensors
    that the attention's `project` returned for the source.

    Args:
        cell: An `AttentionCell`.
        **kwargs: Keyword arguments of `keras.layers.RNN`, except `stateful`.

    Example:

    >>> attention = keras_drill.layers.Attention(keras_drill.layers.AdditiveScore(7))
    >>> cell = keras_drill.layers.AttentionCell(keras.layers.GRUCell(5), attention, size=3)
    >>> memory, target = keras.Input((None, 11)), keras.Input((None, 13))
    >>> keras_drill.layers.AttentionRNN(cell, return_sequences=True)(target, memory).shape
    (None, None, 3)
    """

    def __init__(self, cell: AttentionCell, **kwargs: Any):
        if not isinstance(cell, AttentionCell):
            raise ValueError(f"`cell` must be an AttentionCell. Received: cell={cell!r}")
        if kwargs.get("stateful"):
            raise ValueError("`stateful` must be False. Received: stateful=True")
        super().__init__(cell, **kwargs)

    def build(self, sequences_shape: Shape, memory_shape: Shape, **shapes: Any) -> None:
        super().build(sequences_shape)
        self.cell.build_attention(memory_shape)

    def call(
        self,
        sequences: Tensor,
        memory: Tensor,
        sequences_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        initial_state: Any = None,
        training: bool = False,
    ) -> Any:
        if sequences_mask is not None and keras.backend.backend() != "tensorflow":
            raise ValueError(
                "`sequences_mask` must be None on JAX. Give padding the weight 0 in the loss "
                f"instead. Received: sequences_mask={sequences_mask!r}"
            )
        states = self.cell.start(memory, memory_mask, initial_state)
        return super().call(sequences, states, mask=sequences_mask, training=training)

    def compute_output_shape(self, sequences_shape: Shape, *shapes: Any, **others: Any) -> Any:
        return super().compute_output_shape(sequences_shape)
