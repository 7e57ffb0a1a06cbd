"""The encoder or decoder of a Transformer: token embeddings and a stack of layers."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_drill.layers.dropout import Dropout
from keras_drill.layers.positional_encoding import PositionalEncoding
from keras_drill.layers.transformer_layer import TransformerLayer
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class TransformerStack(keras.layers.Layer):
    """Embeds tokens, adds positional encodings, and applies a stack of `TransformerLayer`s.

        x = D(√d E[tokens] + positions)
        x = layer_L(... layer_1(x))

    E `[V, d]` is the embedding table, `positions` is the positional encoding, and D is dropout. If
    the layers have `norm_first=True`, a layer normalisation follows the last layer.

    Shape letters: B sequences, T tokens, S positions of the source, d features, V words. There are
    L layers.

    Call arguments:
        tokens: `[B, T]` int.
        source: `[B, S, d]`, if the layers attend to a source.
        mask: `None` or bool `[B, T]`, False for tokens to ignore.
        source_mask: `None` or bool `[B, S]`, False for positions of the source to ignore.
        training: whether dropout is on.

    Output shape: `[B, T, d]`.

    Args:
        embedding: `keras.layers.Embedding` of the tokens, which may be shared with other layers.
        num_layers: Number of layers L.
        layer_arguments: Dictionary of the constructor arguments of every `TransformerLayer`, except
            `seed`, `dtype` and `name`.
        positions: Kind of the positional encoding, "sinusoidal" or "learned".
        max_length: Number of learned positions; `None` with "sinusoidal". Longer sequences raise an
            error if their length is static. If their length is only known at run time, the outputs
            of causal layers are NaN at later positions, except at padding. With other layers, all
            outputs of a longer sequence are NaN.
        scale_embedding: Whether embeddings are multiplied by √d.
        dropout: Rate of the dropout D on the sums of embeddings and positional encodings.
        seed: Integer for all dropout masks, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> embedding = keras.layers.Embedding(11, 6)
    >>> arguments = {"num_heads": 2, "feed_forward_dim": 13, "causal": True}
    >>> stack = keras_drill.layers.TransformerStack(embedding, 2, layer_arguments=arguments)
    >>> tuple(stack(keras.ops.ones((3, 5), "int32")).shape)
    (3, 5, 6)
    """

    def __init__(
        self,
        embedding: keras.layers.Embedding,
        num_layers: int,
        layer_arguments: dict,
        positions: str = "sinusoidal",
        max_length: int | None = None,
        scale_embedding: bool = True,
        dropout: float = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if not isinstance(num_layers, int) or num_layers < 1:
            raise ValueError(
                f"`num_layers` must be at least 1. Received: num_layers={num_layers!r}"
            )
        self.embedding = embedding
        self.num_layers = num_layers
        self.layer_arguments = layer_arguments
        self.positions = positions
        self.max_length = max_length
        self.scale_embedding = scale_embedding
        self.dropout = dropout
        self.seed = seed
        self.supports_masking = True
        self.positional_encoding = PositionalEncoding(
            positions, max_length, dtype=self.dtype_policy, name="positions"
        )
        self.embedding_dropout = Dropout(
            dropout, seed=self._layer_seed(0), dtype=self.dtype_policy, name="embedding_dropout"
        )
        self.transformer_layers = [
            TransformerLayer(
                **layer_arguments,
                seed=self._layer_seed(1 + index),
                dtype=self.dtype_policy,
                name=f"layer_{index}",
            )
            for index in range(num_layers)
        ]
        self.final_norm = None
        if self.transformer_layers[0].norm_first:
            self.final_norm = keras.layers.LayerNormalization(
                epsilon=self.transformer_layers[0].layer_norm_epsilon,
                dtype=self.dtype_policy,
                name="final_norm",
            )

    def _layer_seed(self, index: int) -> int | None:
        return None if self.seed is None else 1000 * self.seed + index

    def build(self, tokens_shape: Shape, source_shape: Shape | None = None) -> None:
        shape = (None, None, self.embedding.output_dim)
        if not self.embedding.built:
            self.embedding.build(tokens_shape)
        for layer in self.transformer_layers:
            layer.build(shape)
        self.positional_encoding.build(shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)

    def call(
        self,
        tokens: Tensor,
        source: Tensor | None = None,
        mask: Tensor | None = None,
        source_mask: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        x = self._embed(tokens, 0, training, mark_unknown=False)
        for layer in self.transformer_layers:
            x = layer(x, source, mask=mask, source_mask=source_mask, training=training)
        x = x if self.final_norm is None else self.final_norm(x)
        return x if self.max_length is None else self._mark_unknown_positions(x, mask)

    def _mark_unknown_positions(self, x, mask):
        """Replaces outputs that depend on positions from `max_length` on by NaN.

        If `PositionalEncoding` marked the inputs, attention with a weight of 0 would spread NaN to
        short texts, which are padded because of a long text in the batch.
        """
        is_unknown = (ops.arange(ops.shape(x)[1]) >= self.max_length)[None, :]
        if mask is not None:
            is_unknown = ops.logical_and(is_unknown, mask)
        if not self.transformer_layers[0].causal:
            is_unknown = ops.any(is_unknown, axis=1, keepdims=True)  # of the text
        return ops.where(is_unknown[..., None], math.nan, x)

    def project_source(self, source: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Returns a list with each layer's keys and values of a source `[B, S, d]`.

        Call this method once for a source, and pass the list to every call of `step` as `sources`.
        """
        source = ops.add(source, 0)  # a tensor without a Keras mask: Dense would warn of the mask
        return [layer.project_source(source) for layer in self.transformer_layers]

    def empty_caches(self, batch_size: int, length: int) -> list[tuple[Tensor, Tensor]]:
        """Returns a list with each layer's cache before the first token, for `step`.

        The caches are the outputs of `TransformerLayer.empty_cache`.

        Args:
            batch_size: Number of rows (sequences) R.
            length: Largest number of positions that will be read.
        """
        return [layer.empty_cache(batch_size, length) for layer in self.transformer_layers]

    def step(
        self,
        tokens: Tensor,
        caches: Sequence[tuple[Tensor, Tensor]],
        position: Tensor,
        sources: Sequence[tuple[Tensor, Tensor] | None] | None = None,
        source_mask: Tensor | None = None,
        return_attention: bool = False,
    ) -> tuple:
        """Reads one more token of R rows (sequences), for inference with causal layers.

        The rows of each of the B sources are adjacent, for example the beams of a beam search. All
        sources have the same number of rows, R / B.

        Args:
            tokens: Integers `[R]`, the next token of each row.
            caches: Each layer's cache: the output of `empty_caches`, or of the previous step.
            position: Integers `[R]`, the number of tokens that each row has read before.
            sources: Output of `project_source` for the B sources, if the layers attend to a source;
                else `None`.
            source_mask: `None` or bool `[B, S]`, False for positions of the source to ignore.
            return_attention: Whether to return the last layer's attention to the source.

        Returns:
            Hidden states `[R, d]` and the new caches. With `return_attention=True` also the
            attention weights of the source's positions, `[R, S]` in float32, the mean over the
            heads of the last layer.
        """
        x = self._embed(tokens[:, None], position, training=False)  # [R, 1, d]
        sources = sources or [None] * self.num_layers
        new_caches: list = []
        weights: list = []
        for layer, cache, source in zip(self.transformer_layers, caches, sources, strict=True):
            is_asked = return_attention and layer is self.transformer_layers[-1]
            x, cache, *weights = layer.step(x, cache, position, source, source_mask, is_asked)
            new_caches.append(cache)
        x = x if self.final_norm is None else self.final_norm(x)
        return x[:, 0], new_caches, *weights

    def _embed(self, tokens, start, training, mark_unknown=True):
        x = self.embedding(tokens)
        if self.scale_embedding:
            x = x * ops.cast(self.embedding.output_dim**0.5, x.dtype)
        x = self.positional_encoding(x, start=start, mark_unknown=mark_unknown)
        return self.embedding_dropout(x, training=training)

    def compute_output_shape(self, tokens_shape: Shape, source_shape: Shape | None = None) -> Shape:
        return (*tokens_shape, self.embedding.output_dim)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "num_layers": self.num_layers,
            "layer_arguments": self.layer_arguments,
            "positions": self.positions,
            "max_length": self.max_length,
            "scale_embedding": self.scale_embedding,
            "dropout": self.dropout,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict) -> "TransformerStack":
        config = dict(config)
        if isinstance(config.get("embedding"), dict):
            config["embedding"] = keras.saving.deserialize_keras_object(config["embedding"])
        return cls(**config)
