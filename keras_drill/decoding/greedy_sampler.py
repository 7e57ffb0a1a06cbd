"""Greedy decoding."""

import keras
from keras import ops

from keras_drill.decoding.sampler import Sampler
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class GreedySampler(Sampler):
    """Chooses the most probable word at every step.

    Among equally probable words, the sampler chooses the word with the lowest id. Pass the sampler
    to `keras_drill.decoding.generate`, which uses this sampler by default.

    Example:

    >>> import keras
    >>> from keras_drill.decoding import GreedySampler
    >>> sampler = GreedySampler()
    >>> int(sampler.choose(keras.ops.log(keras.ops.array([[0.2, 0.5, 0.3]])), None)[0])
    1
    """

    is_random = False

    def choose(self, log_probs: Tensor, uniforms: Tensor) -> Tensor:
        return ops.argmax(log_probs, axis=-1)
