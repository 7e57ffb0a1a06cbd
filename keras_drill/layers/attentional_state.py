"""The output of a recurrent decoder with attention to a source.

R rows, R / B for each of B sources; T positions, H units, d features of the result.
"""

from typing import Any

import keras
from keras import ops

from keras_drill.layers.attention import by_source
from keras_drill.types import Initializer, Shape, Tensor


class AttentionalState(keras.layers.Layer):
    """Output of a decoder at a position, from its state and its attention to the source.

        a_t = tanh(W [context_t; h_t]),    context_t = attention(h_t, source)

    Call arguments:
        states: h `[R, T, H]`.
        source: Output of `project`.
        positions: Integers `[R, T]`, the states' places in the target; `None` is 0, 1, ....

    Output shape: `[R, T, d]`.

    Args:
        size: d.
        attention: `keras_drill.layers.Attention` or the like; `None`: there is no context.
        kernel_initializer: Of W.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    References:
        - [Luong et al., 2015](https://arxiv.org/abs/1508.04025), equation 5
    """

    def __init__(
        self,
        size: int,
        attention: keras.layers.Layer | None = None,
        kernel_initializer: Initializer = "glorot_uniform",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.attention = attention
        self.dense = keras.layers.Dense(
            size,
            activation="tanh",
            use_bias=False,
            kernel_initializer=kernel_initializer,
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, states_shape: Shape, memory_shape: Shape) -> None:
        width = states_shape[-1]
        if self.attention is not None:
            self.attention.build(states_shape, memory_shape)
            query, memory = (
                keras.KerasTensor((None, None, shape[-1]), self.compute_dtype)
                for shape in (states_shape, memory_shape)
            )
            source = self.project(memory, keras.KerasTensor((None, None), "bool"))
            width += self.attention.compute_output_spec(query, source)[0].shape[-1]
        self.dense.build((None, None, width))
        self.built = True

    def project(self, memory: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """The projected source, the same for every state; nothing without attention."""
        return {} if self.attention is None else self.attention.project(memory, mask)

    def call(
        self, states: Tensor, source: dict[str, Tensor], positions: Tensor | None = None
    ) -> Tensor:
        return self._attend(states, source, positions)[0]

    def step(
        self, states: Tensor, source: dict[str, Tensor], positions: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """One position of every row: `[R, d]` of `[R, H]`, where rows may share a source.

        Also each row's attention, `[R, S]`; `None` without attention.
        """
        states = ops.cast(states, self.compute_dtype)
        if self.attention is None:
            return self._attend(states, source, positions)
        sources = ops.shape(source["mask"])[0]
        hidden, alignments = self._attend(
            by_source(states, sources), source, by_source(positions, sources)
        )  # [B, R / B, d], [B, R / B, S]
        rows = ops.shape(states)[0]
        return (
            ops.reshape(hidden, (rows, hidden.shape[-1])),
            ops.reshape(alignments, (rows, ops.shape(alignments)[-1])),
        )

    def _attend(self, states, source, positions):
        if self.attention is None:
            return self.dense(states), None
        contexts, alignments = self.attention(states, source, positions=positions)
        contexts = ops.cast(contexts, self.compute_dtype)
        return self.dense(ops.concatenate([contexts, states], axis=-1)), alignments
