"""Seeds of random numbers that differ between the replicas of `tf.distribute`."""

from typing import Any

import keras
from keras import ops

from keras_drill.ops.replicas import replica_id

_NUM_SEEDS = 2**31 - 2  # Keras on TensorFlow takes seeds modulo this number
# `_NUM_SEEDS` divided by the golden ratio. Multiples of this number are far apart: the seeds of
# 512 replicas differ by at least 2.5 million draws.
_STRIDE = 1327217909


class SeedGenerator(keras.random.SeedGenerator):
    """Seed generator for a layer's random draws, with different seeds on each replica.

    Keras uses the same seed, and so the same dropout mask, on every replica of `tf.distribute`
    (keras issue 20611). On one device, and on the first replica, the seeds are those of
    `keras.random.SeedGenerator`. The state is the same on all replicas, so that training resumes
    exactly.
    """

    def next(self, ordered: bool = True) -> Any:
        seed = super().next(ordered)
        replica = replica_id()
        if isinstance(replica, int) and replica == 0:
            return seed
        offset = ops.cast(replica, seed.dtype) * _STRIDE
        return seed + ops.stack([ops.zeros_like(offset), offset])


def derived_seed(seed: int | None, index: int) -> int | None:
    """Returns the seed for one of a layer's several sources of randomness.

    Args:
        seed: The layer's seed, or `None` for random seeds.
        index: Number of the source, from 0. Each index has its own seed; the seed of index 0
            is `seed`.

    Returns:
        A seed, or `None` if `seed` is `None`.
    """
    return None if seed is None else (seed + index * _STRIDE) % _NUM_SEEDS if index else seed
