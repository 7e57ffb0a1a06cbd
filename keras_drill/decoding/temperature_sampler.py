"""Sampling from the whole distribution."""

import keras
from keras import ops

from keras_drill.decoding.random_streams import draw
from keras_drill.decoding.sampler import Sampler
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class TemperatureSampler(Sampler):
    """Samples from p^(1/temperature), normalised, where p is the model's distribution over words.

    Pass the sampler to `keras_drill.decoding.generate` as `sampler`.

    Args:
        temperature: From 1e-30 to 1e30. A temperature below 1 makes probable words more probable. A
            temperature above 1 makes the distribution more uniform.

    Example:

    >>> import keras
    >>> from keras_drill.decoding import TemperatureSampler
    >>> sampler = TemperatureSampler(0.7)
    >>> log_probs = keras.ops.log(keras.ops.array([[0.25, 0.75]]))
    >>> random_number = keras.ops.array([0.1])
    >>> int(sampler.choose(log_probs, random_number)[0])
    0
    """

    def __init__(self, temperature: float = 1.0):
        if temperature == 0:
            raise ValueError(
                "`temperature` must be positive; use `GreedySampler()` for the limit at 0. "
                f"Received: temperature={temperature}"
            )
        if not 1e-30 <= temperature <= 1e30:  # by which float32 can divide
            raise ValueError(
                "`temperature` must be positive, from 1e-30 to 1e30. "
                f"Received: temperature={temperature}"
            )
        self.temperature = temperature

    def get_config(self) -> dict:
        return {"temperature": self.temperature}

    def choose(self, log_probs: Tensor, uniforms: Tensor) -> Tensor:
        return draw(self.probabilities(log_probs), uniforms)

    def probabilities(self, log_probs: Tensor) -> Tensor:
        """Returns the distribution from which the sampler draws: p^(1/temperature), normalised.

        Args:
            log_probs: Float32 tensor `[B, V]`, the model's log-probabilities log p of V words for B
                sequences.

        Returns:
            Probabilities, a float32 tensor `[B, V]`.
        """
        # The most probable first, or a small temperature could make all of them -inf.
        log_ratios = log_probs - ops.max(log_probs, axis=-1, keepdims=True)
        return ops.softmax(log_ratios / self.temperature, axis=-1)
