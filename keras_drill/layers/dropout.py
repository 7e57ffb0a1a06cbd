from typing import Any

import keras

from keras_drill.ops.seed_generator import SeedGenerator


@keras.saving.register_keras_serializable(package="keras_drill")
class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout` with different masks on each replica of `tf.distribute`.

    Keras' own layer draws the same mask on every replica. On one device, and on the first replica,
    the masks are those of Keras for the same seed.

    Args:
        rate: float in `[0, 1]`, the probability of dropping an entry.
        noise_shape: as in `keras.layers.Dropout`.
        seed: integer, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> layer = keras_drill.layers.Dropout(0.5, seed=1)
    >>> y = layer(keras.ops.ones((2, 3)), training=True)
    >>> bool(keras.ops.all((y == 0) | (y == 2)))
    True
    """

    def __init__(
        self,
        rate: float,
        noise_shape: tuple[int | None, ...] | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(rate, noise_shape=noise_shape, seed=seed, **kwargs)
        separate_replicas(self)


def separate_replicas(dropout: keras.layers.Dropout) -> None:
    """Makes a dropout layer of Keras draw different masks on each replica of `tf.distribute`."""
    if dropout.rate > 0:
        # With a new generator, the state of the old one would stay among the layer's variables.
        dropout.seed_generator.__class__ = SeedGenerator
