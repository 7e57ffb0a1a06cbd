"""Word embeddings of backbones."""

from collections.abc import Callable
from typing import Any

import keras

from keras_drill.senses import SenseEmbedding
from keras_drill.types import Initializer


def word_embedding(
    embedding: keras.layers.Embedding | None,
    vocabulary_size: int,
    size: int,
    name: str,
    initializer: Callable[..., Initializer],
    seed: int | None,
    dtype: Any,
) -> keras.layers.Embedding:
    """Checks and returns `embedding`. For `None`, creates an embedding with
    `initializer(seed=seed)`.
    """
    if embedding is None:
        return keras.layers.Embedding(
            vocabulary_size,
            size,
            embeddings_initializer=initializer(seed=seed),
            dtype=dtype,
            name=name,
        )
    is_sense = isinstance(embedding, SenseEmbedding)
    words = embedding.allocation.vocabulary_size if is_sense else embedding.input_dim
    if (words, embedding.output_dim) != (vocabulary_size, size):
        raise ValueError(
            f"`{name}` must have {vocabulary_size} words and width {size}. "
            f"Received: {words} words, width {embedding.output_dim}"
        )
    return embedding
