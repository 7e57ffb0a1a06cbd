from typing import Any

import keras
from keras import ops

from keras_drill.ops.seed_generator import SeedGenerator
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class EmbeddingDropout(keras.layers.Layer):
    """Dropout of whole words: every occurrence of a dropped word becomes the zero vector.

        y[b, t, :] = vectors[b, t, :] · mask[tokens[b, t]],
        mask[v] ~ Bernoulli(1 − rate) / (1 − rate)

    b is a sequence of the batch, t a position and v one of V words. This is dropout on the rows of
    the embedding matrix `[V, d]`, with d features, applied to the looked-up vectors. The layer
    makes no copy of the matrix, and an output layer that shares the matrix (weight tying) reads it
    without dropout.

    Call arguments:
        vectors: `[..., d]`, the embeddings of `tokens`.
        tokens: `[...]` int, ids of the words that were looked up.

    Args:
        rate: float in `[0, 1)`, the probability of dropping a word.
        vocabulary_size: number of words V.
        seed: integer, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> layer = keras_drill.layers.EmbeddingDropout(0.5, vocabulary_size=11, seed=1)
    >>> tokens = keras.ops.array([[3, 4, 3]])
    >>> y = layer(keras.ops.ones((1, 3, 5)), tokens, training=True)
    >>> bool(keras.ops.all(y[:, 0] == y[:, 2]))
    True

    References:
        - [Gal and Ghahramani, 2016](https://arxiv.org/abs/1512.05287)
        - [Merity et al., 2018](https://arxiv.org/abs/1708.02182), section 4.3
    """

    def __init__(self, rate: float, vocabulary_size: int, seed: int | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be in [0, 1). Received: rate={rate}")
        self.rate = rate
        self.vocabulary_size = vocabulary_size
        self.seed = seed
        self.seed_generator = SeedGenerator(seed)

    def call(self, vectors: Tensor, tokens: Tensor, training: bool = False) -> Tensor:
        if not training or self.rate == 0:
            return vectors
        mask = keras.random.dropout(
            ops.ones((self.vocabulary_size,), vectors.dtype), self.rate, seed=self.seed_generator
        )
        return vectors * ops.expand_dims(ops.take(mask, tokens, axis=0), -1)

    def compute_output_shape(
        self, vectors_shape: Shape, tokens_shape: Shape | None = None
    ) -> Shape:
        return vectors_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "rate": self.rate,
            "vocabulary_size": self.vocabulary_size,
            "seed": self.seed,
        }
