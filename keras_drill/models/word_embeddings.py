"""The embeddings of words that backbones are given, or make."""

from typing import Any

import keras

from keras_drill.senses import SenseEmbedding


def word_embedding(
    embedding: keras.layers.Layer | None,
    vocabulary_size: int,
    size: int,
    name: str,
    seed: int | None,
    dtype: Any,
) -> keras.layers.Layer:
    """`embedding`, if it fits; a new one in place of `None`."""
    if embedding is None:
        return keras.layers.Embedding(
            vocabulary_size,
            size,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=size**-0.5, seed=seed),
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
