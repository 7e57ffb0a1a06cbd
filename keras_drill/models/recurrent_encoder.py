"""The encoder of a recurrent encoder–decoder."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_drill.layers import VariationalDropout
from keras_drill.layers.recurrent import Recurrent
from keras_drill.types import Shape, Tensor


class RecurrentEncoder(keras.layers.Layer):
    """Encoder whose recurrent layers read the source in one direction or in both.

        x^0 = D(E[source]),    x^l = D([forward_l(x^{l-1}); backward_l(x^{l-1})])

    E is the embedding, and D a dropout.

    Call arguments:
        source: `[B, S]` int.
        mask: `None` or bool `[B, S]`. Masked tokens are not read.
        training: Whether dropout is on.

    Returns:
        The last layer's outputs `[B, S, m]`, and each layer's last states `[B, m]`, with both
        directions concatenated.

    Args:
        embedding: Embedding of the source's words.
        layers: `keras_drill.layers.LSTM`s or `GRU`s, time-major, that return sequences and states.
        backward_layers: The same number of layers that read backwards, or an empty list for one
            direction.
        dropout: Rate of D, whose masks are shared by all time steps.
        reverse: Whether the forward layers read backwards.
        end_last: Whether layers with `reverse` read the source's last token last instead of first.
            Only without `backward_layers`. Padding must follow the tokens.
        seed: Integer for the dropouts, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.
    """

    def __init__(
        self,
        embedding: keras.layers.Layer,
        layers: list[Recurrent],
        backward_layers: Sequence[Recurrent] = (),
        dropout: float = 0.0,
        reverse: bool = False,
        end_last: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.embedding = embedding
        self.recurrent_layers = list(layers)
        self.backward_layers = list(backward_layers)
        self.reverse = reverse
        self.end_last = end_last
        self.supports_masking = True
        self.dropouts = [
            VariationalDropout(
                dropout,
                time_major=True,
                seed=None if seed is None else seed + i,
                dtype=self.dtype_policy,
                name=f"dropout_{i}",
            )
            for i in range(len(layers) + 1)
        ]

    @property
    def directions(self) -> list[tuple[Recurrent, ...]]:
        """For each depth, the forward layer and, if there is one, the backward layer."""
        if not self.backward_layers:
            return [(layer,) for layer in self.recurrent_layers]
        return list(zip(self.recurrent_layers, self.backward_layers, strict=True))

    @property
    def layer_sizes(self) -> list[int]:
        """Width m of each layer's outputs."""
        return [sum(layer.units for layer in directions) for directions in self.directions]

    def build(self, source_shape: Shape) -> None:
        if not self.embedding.built:
            self.embedding.build(source_shape)
        sizes = [self.embedding.output_dim, *self.layer_sizes]
        for directions, size in zip(self.directions, sizes[:-1], strict=True):
            for layer in directions:
                layer.build((None, None, size))
        for dropout, size in zip(self.dropouts, sizes, strict=True):
            dropout.build((None, None, size))
        self.built = True

    def call(
        self, source: Tensor, mask: Tensor | None = None, training: bool = False
    ) -> tuple[Tensor, list[list[Tensor]]]:
        order = self._reading_order(source, mask) if self.reverse and self.end_last else None
        if order is not None:
            source = ops.take_along_axis(source, order, axis=1)
        source = ops.transpose(source)  # [S, B]
        mask = None if mask is None else ops.transpose(mask)
        x = self.dropouts[0](self.embedding(source), training=training)
        states = []
        for directions, dropout in zip(self.directions, self.dropouts[1:], strict=True):
            reverse = self.reverse and order is None
            found = [
                self._read(layer, x, mask, training, backwards=reverse != bool(i))
                for i, layer in enumerate(directions)
            ]
            outputs, *layer_states = (
                ops.concatenate(parts, axis=-1) for parts in zip(*found, strict=True)
            )
            x = dropout(outputs, training=training)
            states.append(layer_states)
        x = ops.transpose(x, (1, 0, 2))
        if order is not None:  # the order is its own inverse
            x = ops.take_along_axis(x, order[:, :, None], axis=1)
        return x, states

    def compute_mask(self, source: Tensor, previous_mask: Tensor | None = None) -> None:
        """Returns `None`: the decoder receives the source's mask as an argument."""

    def _reading_order(self, source, mask):
        """Returns positions `[B, S]` that reverse sources, except for last token and padding."""
        places = ops.arange(ops.shape(source)[1], dtype="int32")[None]  # [1, S]
        mask = ops.ones_like(source, "bool") if mask is None else mask
        last = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True) - 1  # [B, 1]
        return ops.where(places < last, last - 1 - places, places)

    def _read(self, layer, x, mask, training, backwards):
        """Returns the outputs in the order of the source, and the last states."""
        if not backwards:
            return layer(x, mask=mask, training=training)
        # Padding then comes first, and leaves the state at zero.
        mask = None if mask is None else ops.flip(mask, axis=0)
        outputs, *states = layer(ops.flip(x, axis=0), mask=mask, training=training)
        return ops.flip(outputs, axis=0), *states
