"""Sampling among the k most probable words."""

import keras
from keras import ops

from keras_drill.decoding.random_streams import draw
from keras_drill.decoding.temperature_sampler import TemperatureSampler
from keras_drill.ops.top_k import top_k
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class TopKSampler(TemperatureSampler):
    """Samples from the `k` most probable words, with renormalised probabilities.

    Pass the sampler to `keras_drill.decoding.generate` as `sampler`.

    Args:
        k: Number of words to keep, at most the vocabulary size. Among equally probable words, those
            with the lowest ids are kept.
        temperature: From 1e-30 to 1e30, see `TemperatureSampler`.

    Example:

    >>> import keras
    >>> from keras_drill.decoding import TopKSampler
    >>> sampler = TopKSampler(2)
    >>> log_probs = keras.ops.log(keras.ops.array([[0.2, 0.5, 0.3]]))
    >>> random_number = keras.ops.array([0.99])
    >>> int(sampler.choose(log_probs, random_number)[0])
    2

    References:
        - Fan, Lewis, Dauphin, "Hierarchical Neural Story Generation", ACL 2018.
    """

    def __init__(self, k: int, temperature: float = 1.0):
        super().__init__(temperature)
        if not isinstance(k, int) or k < 1:
            raise ValueError(f"`k` must be a positive integer. Received: k={k}")
        self.k = k

    def get_config(self) -> dict:
        return {"k": self.k, **super().get_config()}

    def choose(self, log_probs: Tensor, uniforms: Tensor) -> Tensor:
        if self.k > log_probs.shape[-1]:
            raise ValueError(
                f"`k` must be at most the vocabulary size {log_probs.shape[-1]}. "
                f"Received: k={self.k}"
            )
        best, words = top_k(log_probs, self.k)  # [B, k]
        place = draw(self.probabilities(best), uniforms)
        return ops.take_along_axis(words, place[:, None], axis=-1)[:, 0]
