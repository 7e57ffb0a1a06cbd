"""Common parts of the encoder–decoder and the decoder-only Transformer."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_drill.layers.inner_layers import deserialize_layers, serialize_layer
from keras_drill.layers.transformer_stack import TransformerStack
from keras_drill.models.quantizable_backbone import QuantizableBackbone
from keras_drill.models.word_embeddings import word_embedding
from keras_drill.types import Activation, Tensor


class TransformerBackbone(QuantizableBackbone):
    """Base class of the encoder–decoder and the decoder-only Transformer.

    Subclasses pass its arguments in `**options` and create their stacks by `make_stack`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int = 512,
        num_layers: int = 6,
        num_heads: int = 8,
        feed_forward_dim: int = 2048,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        norm_first: bool = False,
        positions: str = "sinusoidal",
        max_length: int | None = None,
        scale_embedding: bool = True,
        pad_id: int | None = 0,
        seed: int | None = None,
        embedding: keras.layers.Embedding | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.feed_forward_dim = feed_forward_dim
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.activation = keras.activations.get(activation)
        self.norm_first = norm_first
        self.positions = positions
        self.max_length = max_length
        self.scale_embedding = scale_embedding
        self.pad_id = pad_id
        self.seed = seed
        self.embedding = self.check_embedding(embedding, vocabulary_size, "embedding")

    def check_embedding(
        self, embedding: keras.layers.Embedding | None, vocabulary_size: int, name: str
    ) -> keras.layers.Embedding:
        """Checks and returns `embedding`; creates a new embedding for `None`."""
        size = self.embedding_dim
        initializer = partial(keras.initializers.RandomNormal, stddev=size**-0.5)
        return word_embedding(
            embedding, vocabulary_size, size, name, initializer, self.seed, self.dtype_policy
        )

    def make_stack(
        self,
        embedding: keras.layers.Embedding,
        num_layers: int,
        seed_offset: int,
        name: str,
        **arguments: bool,
    ) -> TransformerStack:
        """Makes a `TransformerStack` with the options of this backbone.

        `arguments` are arguments of its layers.
        """
        return TransformerStack(
            embedding,
            num_layers,
            layer_arguments={**self._layer_arguments, **arguments},
            positions=self.positions,
            max_length=self.max_length,
            scale_embedding=self.scale_embedding,
            dropout=self.dropout,
            seed=None if self.seed is None else 2 * self.seed + seed_offset,
            dtype=self.dtype_policy,
            name=name,
        )

    @property
    def _layer_arguments(self) -> dict[str, Any]:
        return {
            "num_heads": self.num_heads,
            "feed_forward_dim": self.feed_forward_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation_dropout": self.activation_dropout,
            "activation": keras.activations.serialize(self.activation),
            "norm_first": self.norm_first,
        }

    def token_mask(self, tokens: Tensor) -> Tensor | None:
        """Returns bool `[B, T]`, false for padding; `None` without a padding token."""
        return None if self.pad_id is None else ops.not_equal(tokens, self.pad_id)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "num_layers": self.num_layers,
            **self._layer_arguments,
            "positions": self.positions,
            "max_length": self.max_length,
            "scale_embedding": self.scale_embedding,
            "pad_id": self.pad_id,
            "seed": self.seed,
            "embedding": serialize_layer(self.embedding),
        }

    @classmethod
    def from_config(cls, config: dict) -> "TransformerBackbone":
        return cls(**deserialize_layers(config, "embedding", "source_embedding"))
