"""Top-p sampling, also called nucleus sampling."""

import keras
from keras import ops

from keras_drill.decoding.random_streams import draw
from keras_drill.decoding.temperature_sampler import TemperatureSampler
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class TopPSampler(TemperatureSampler):
    """Samples from the smallest set of most probable words whose probabilities sum to at least `p`.

    The set (nucleus) always contains the most probable word. The temperature is applied before the
    set is chosen. Pass the sampler to `keras_drill.decoding.generate` as `sampler`.

    Args:
        p: Least sum of the probabilities of the set, in (0, 1]. With 1, all words are kept.
        temperature: From 1e-30 to 1e30, see `TemperatureSampler`.

    Example:

    >>> import keras
    >>> from keras_drill.decoding import TopPSampler
    >>> sampler = TopPSampler(0.6)
    >>> log_probs = keras.ops.log(keras.ops.array([[0.2, 0.5, 0.3]]))
    >>> random_number = keras.ops.array([0.99])
    >>> int(sampler.choose(log_probs, random_number)[0])
    2

    References:
        - Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR 2020.
    """

    def __init__(self, p: float, temperature: float = 1.0):
        super().__init__(temperature)
        if not 0 < p <= 1:
            raise ValueError(f"`p` must be above 0 and at most 1. Received: p={p}")
        self.p = p

    def get_config(self) -> dict:
        return {"p": self.p, **super().get_config()}

    def choose(self, log_probs: Tensor, uniforms: Tensor) -> Tensor:
        sorted_log_probs, words = ops.top_k(log_probs, log_probs.shape[-1])  # [B, V]
        probabilities = self.probabilities(sorted_log_probs)
        nucleus = keep_top_p(probabilities, self.p)
        place = draw(nucleus, uniforms)
        return ops.take_along_axis(words, place[:, None], axis=-1)[:, 0]


def keep_top_p(probabilities, p):
    """Sets probabilities outside the nucleus to 0, see `TopPSampler`.

    Args:
        probabilities: Float tensor `[B, V]`, sorted in decreasing order.
        p: A number, or a tensor `[B, 1]`; 1 or more keeps all words.
    """
    before = ops.cumsum(probabilities, axis=-1)[:, :-1]  # [B, V - 1], mass of the better words
    size = 1 + ops.sum(ops.cast(before < p, "int32"), axis=-1, keepdims=True)  # [B, 1]
    positions = ops.arange(ops.shape(probabilities)[-1], dtype="int32")  # [V]
    # The sum of many words may reach 1 before the last of them.
    kept = ops.logical_or(positions < size, ops.convert_to_tensor(p >= 1))
    return ops.where(kept, probabilities, 0.0)
