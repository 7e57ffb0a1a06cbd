"""Sampling among the words that are not much less probable than the most probable word."""

import keras
from keras import ops

from keras_drill.decoding.random_streams import draw
from keras_drill.decoding.temperature_sampler import TemperatureSampler
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class MinPSampler(TemperatureSampler):
    """Samples from the words that are at least `p` times as probable as the most probable word.

    The other words are dropped, and the remaining probabilities are normalised. If the model is
    certain, few words remain; if it is uncertain, many remain. The temperature is applied before
    words are dropped. Pass the sampler to `keras_drill.decoding.generate` as `sampler`.

    Args:
        p: Share of the largest probability, in (0, 1]. With 1, only the most probable word and
            words of the same probability remain.
        temperature: From 1e-30 to 1e30, see `TemperatureSampler`.

    Example:

    >>> import keras
    >>> from keras_drill.decoding import MinPSampler
    >>> sampler = MinPSampler(0.5)
    >>> log_probs = keras.ops.log(keras.ops.array([[0.2, 0.5, 0.3]]))
    >>> random_number = keras.ops.array([0.99])
    >>> int(sampler.choose(log_probs, random_number)[0])
    2

    References:
        - [Nguyen et al., 2024](https://arxiv.org/abs/2407.01082)
    """

    def __init__(self, p: float, temperature: float = 1.0):
        super().__init__(temperature)
        if not 0 < p <= 1:
            raise ValueError(f"`p` must be above 0 and at most 1. Received: p={p}")
        self.p = p

    def get_config(self) -> dict:
        return {"p": self.p, **super().get_config()}

    def choose(self, log_probs: Tensor, uniforms: Tensor) -> Tensor:
        probabilities = self.probabilities(log_probs)  # [B, V]
        best = ops.max(probabilities, axis=-1, keepdims=True)
        return draw(ops.where(probabilities >= self.p * best, probabilities, 0.0), uniforms)
