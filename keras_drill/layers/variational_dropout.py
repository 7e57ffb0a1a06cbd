from typing import Any

import keras
from keras import ops

from keras_drill.ops.seed_generator import SeedGenerator
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class VariationalDropout(keras.layers.Layer):
    """Dropout whose mask is shared by all time steps of a sequence.

        y[b, t, :] = x[b, t, :] · mask[b, :],    mask ~ Bernoulli(1 − rate) / (1 − rate)

    Input shape: `[B, T, d]`, or `[T, B, d]` with `time_major=True`, for B sequences b, T time steps
    t and d features. Output shape: the same.

    Args:
        rate: float in `[0, 1)`, the probability of dropping a feature of a sequence.
        time_major: whether time is the first axis.
        seed: integer, or `None` for a random seed.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> layer = keras_drill.layers.VariationalDropout(0.5, seed=1)
    >>> y = layer(keras.ops.ones((2, 5, 7)), training=True)
    >>> bool(keras.ops.all(y[:, 0] == y[:, 4]))
    True

    References:
        - [Gal and Ghahramani, 2016](https://arxiv.org/abs/1512.05287)
    """

    def __init__(
        self, rate: float, time_major: bool = False, seed: int | None = None, **kwargs: Any
    ):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be in [0, 1). Received: rate={rate}")
        self.rate = rate
        self.time_major = time_major
        self.seed = seed
        self.seed_generator = SeedGenerator(seed)
        self.supports_masking = True

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        if not training or self.rate == 0:
            return inputs
        time_axis = 0 if self.time_major else 1
        shape = list(ops.shape(inputs))
        shape[time_axis] = 1
        mask = keras.random.dropout(
            ops.ones(shape, inputs.dtype), self.rate, seed=self.seed_generator
        )
        return inputs * mask

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "rate": self.rate,
            "time_major": self.time_major,
            "seed": self.seed,
        }
