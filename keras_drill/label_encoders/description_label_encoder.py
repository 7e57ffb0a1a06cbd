from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.label_encoders.label_encoder import LabelEncoder, UnquantizedDense
from keras_drill.ops.seed_generator import SeedGenerator
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class DescriptionLabelEncoder(LabelEncoder):
    """Computes labels from a description of every word, with or without the word's embedding.

        label_w = k_w E_w + network(descriptions_w)

    The label of word w is the word's output embedding. A description is information about w that
    does not come from the training text: its characters, its definition, or its embedding in
    another model. E_w is the word's embedding in the output layer. The factor k_w is 1 for words of
    the training vocabulary and 0 for words that are added later (`OutputLayer.with_words`), whose
    labels are computed from their descriptions alone. In each training step, k_w is also 0 for a
    random share `embedding_dropout` of the words, so that the network learns labels without
    embeddings. Unlike in Keras' dropout, the remaining embeddings are not scaled.

    Pass this encoder to `keras_drill.OutputLayer`. The network runs once per training step over all
    words, whatever the number of tokens. If words have several senses, every sense has its own
    embedding and uses the description of its current word.

    The descriptions are weights that are not trained. A saved model contains their values. The
    config contains only their shape and dtype.

    Shapes:
        embeddings: `[M, d]`; descriptions: `[V, ...]`; labels: `[M, d_h]`. M is the number of
            labels: V words, or their senses. d_h is the width of the hidden states, and must equal
            the width d of the embeddings with `residual_to_input=True`.

    Args:
        descriptions: `[V, ...]` floats (features) or integers (such as ids of characters, padded to
            one length). Or a dictionary `{"shape": ..., "dtype": ...}`, if the values will be
            loaded with the weights.
        network: A layer that maps descriptions to `[V, d_h]`; `None` is a `Dense` layer without
            bias, for descriptions by f features, floats `[V, f]`. A `keras.Sequential` over ids
            must begin with a `keras.Input` of the ids' dtype.
        residual_to_input: Whether to add the word's embedding if the word has one. With `False`,
            labels depend only on descriptions, and the output layer has no embeddings.
        embedding_dropout: Share of the words whose embedding is dropped in a training step, in [0,
            1). Use a share above 0 if words will be added later. Must be 0 with
            `residual_to_input=False`.
        seed: Integer seed for choosing these words, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Raises:
        ValueError: An argument is out of range, or the number of descriptions is not the number of
            words.

    Example:

    >>> spellings = np.array([[3, 1, 20], [4, 15, 7], [4, 15, 0]])
    >>> network = keras.Sequential(
    ...     [
    ...         keras.Input((3,), dtype="int32"),
    ...         keras.layers.Embedding(27, 5),
    ...         keras.layers.Conv1D(7, 2, activation="relu"),
    ...         keras.layers.GlobalMaxPooling1D(),
    ...         keras.layers.Dense(13),
    ...     ]
    ... )
    >>> encoder = keras_drill.DescriptionLabelEncoder(spellings, network, embedding_dropout=0.3)
    >>> head = keras_drill.OutputLayer(3, label_encoder=encoder)
    >>> head(keras.ops.ones((2, 13))).shape
    TensorShape([2, 3])

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513), section 7, where labels from
          descriptions are future work
        - [Kim et al., 2016](https://arxiv.org/abs/1508.06615) (words read as characters)
    """

    def __init__(
        self,
        descriptions: Any,
        network: keras.layers.Layer | None = None,
        residual_to_input: bool = True,
        embedding_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if not 0 <= embedding_dropout < 1:
            raise ValueError(
                "`embedding_dropout` must be in [0, 1). "
                f"Received: embedding_dropout={embedding_dropout!r}"
            )
        if embedding_dropout and not residual_to_input:
            raise ValueError(
                "`embedding_dropout` must be 0 where labels have no embeddings "
                f"(`residual_to_input=False`). Received: embedding_dropout={embedding_dropout}"
            )
        self.network = network
        self.residual_to_input = residual_to_input
        self.embedding_dropout = embedding_dropout
        self.seed = seed
        self.seed_generator = SeedGenerator(seed)
        self.descriptions = self._make_descriptions(descriptions)
        self.has_embedding = self.add_weight(
            shape=self.descriptions.shape[:1],
            initializer="ones",
            trainable=False,
            name="has_embedding",
        )
        is_float = "float" in self.descriptions.dtype
        if network is None and not (is_float and len(self.descriptions.shape) == 2):
            raise ValueError(
                "`network` must be a layer unless `descriptions` are a matrix of floats, with one "
                "row for each word. "
                f"Received: network=None, descriptions of shape {self.descriptions.shape} and "
                f"dtype {self.descriptions.dtype}"
            )
        self.label_network = network

    def _make_descriptions(self, given):
        if isinstance(given, Mapping):
            shape, dtype, value = tuple(given["shape"]), given["dtype"], None
        else:
            value = np.asarray(ops.convert_to_numpy(given))
            if value.dtype.kind not in "iuf" or value.ndim < 2 or 0 in value.shape:
                raise ValueError(
                    "`descriptions` must be numbers, in an array with one row for each word, at "
                    "least two axes, and no axis of size 0. "
                    f"Received: shape {value.shape}, dtype {value.dtype}"
                )
            shape = value.shape
            dtype = self.variable_dtype if value.dtype.kind == "f" else "int32"
        descriptions = self.add_weight(
            shape=shape, dtype=dtype, initializer="zeros", trainable=False, name="descriptions"
        )
        if value is not None:
            descriptions.assign(value.astype(dtype))
        return descriptions

    @property
    def reads_embeddings(self) -> bool:
        return self.residual_to_input

    def build(self, embeddings_shape: Shape, hidden_shape: Shape) -> None:
        if self.label_network is None:
            # No bias: a vector that is added to all labels does not change a softmax.
            self.label_network = UnquantizedDense(
                hidden_shape[-1], use_bias=False, dtype=self.dtype_policy, name="label_network"
            )
        super().build(embeddings_shape, hidden_shape)
        if self.residual_to_input and embeddings_shape[-1] != hidden_shape[-1]:
            raise ValueError(
                f"The embeddings must have the width {hidden_shape[-1]} of the labels, because "
                "`residual_to_input=True` adds them. "
                f"Received: embeddings of width {embeddings_shape[-1]}"
            )

    def check_words(self, vocabulary_size: int) -> None:
        if self.descriptions.shape[0] != vocabulary_size:
            raise ValueError(
                f"`descriptions` must have one row for each of the {vocabulary_size} words. "
                f"Received: {self.descriptions.shape[0]} rows"
            )

    def encode_labels(
        self, embeddings: Tensor, training: bool | None = None, words: Tensor | None = None
    ) -> Tensor:
        descriptions = ops.convert_to_tensor(self.descriptions)
        labels = super().encode_labels(descriptions, training)  # [V, d_h]
        rows = embeddings.shape[0]
        labels = _rows_of_labels(labels, words, rows)
        if not self.residual_to_input:
            return labels
        kept = _rows_of_labels(self._kept(training), words, rows)
        return ops.cast(kept, embeddings.dtype) * embeddings + ops.cast(labels, embeddings.dtype)

    def _kept(self, training):
        """Returns k_w for every word, `[V, 1]`: 1 if the word's embedding is added, else 0."""
        kept = ops.convert_to_tensor(self.has_embedding)[:, None]
        if training and self.embedding_dropout:
            drawn = keras.random.uniform(kept.shape, seed=self.seed_generator, dtype=kept.dtype)
            kept = kept * ops.cast(drawn >= self.embedding_dropout, kept.dtype)
        return kept

    def _label_width(self, embeddings_shape):
        return self._output_width(self.label_network, tuple(self.descriptions.shape))

    def get_config(self) -> dict:
        network = self.network
        return {
            **super().get_config(),
            "descriptions": {
                "shape": list(self.descriptions.shape),
                "dtype": self.descriptions.dtype,
            },
            "network": network and keras.saving.serialize_keras_object(network),
            "residual_to_input": self.residual_to_input,
            "embedding_dropout": self.embedding_dropout,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict) -> "DescriptionLabelEncoder":
        config = dict(config)
        if isinstance(config["network"], dict):
            config["network"] = keras.saving.deserialize_keras_object(config["network"])
        return cls(**config)


def _rows_of_labels(rows, words, count):
    """Returns the row of each label's word, `[count, ...]`. Padding rows are zeros.

    Args:
        rows: `[V, ...]`, one row for each word.
        words: `[M]`, the word of every label, or `None` if label j belongs to word j.
        count: Number of labels, with padding.
    """
    if words is not None:
        rows = ops.take(rows, words, axis=0)
    missing = count - rows.shape[0]
    return ops.pad(rows, ((0, missing), (0, 0))) if missing else rows
