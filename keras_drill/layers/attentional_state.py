"""The output of a recurrent decoder with attention to a source.

Shape letters: R rows, R / B for each of B sources; S positions of a source, T positions of the
decoder, H units, d features of the output.
"""

from typing import Any

import keras
from keras import ops

from keras_drill.layers.attention import by_source
from keras_drill.types import Initializer, Shape, Tensor


class AttentionalState(keras.layers.Layer):
    """Computes a decoder's output at a position from its state and its attention to the source.

        a_t = tanh(W [context_t; h_t]),    context_t = attention(h_t, source)

    h_t is the decoder's state. The output a_t is known as the attentional state.

    Call arguments:
        states: The decoder's states h, `[R, T, H]`.
        source: Output of `project`.
        positions: Integers `[R, T]`, the states' positions in the target; `None` is 0, 1, ....

    Output shape: `[R, T, d]`.

    Args:
        size: Width d of the output.
        attention: `keras_drill.layers.Attention`, or a layer with the same methods. With `None`,
            a_t = tanh(W h_t).
        kernel_initializer: Initializer of W.
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
        """Returns the projected source, equal for all states; `{}` without attention."""
        return {} if self.attention is None else self.attention.project(memory, mask)

    def call(
        self, states: Tensor, source: dict[str, Tensor], positions: Tensor | None = None
    ) -> Tensor:
        return self._attend(states, source, positions)[0]

    def step(
        self, states: Tensor, source: dict[str, Tensor], positions: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Computes the output at one position of every row, where rows may share a source.

        Args:
            states: `[R, H]`, the rows of one source next to each other.
            source: Output of `project` for the B sources.
            positions: Integers `[R]`, the rows' positions in the target.

        Returns:
            Outputs `[R, d]`, and attention weights `[R, S]`, `None` without attention.
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
