"""Seeds of random numbers that differ between the replicas of `tf.distribute`."""

from typing import Any

import keras
from keras import ops

from keras_drill.ops.replicas import replica_id

_NUM_SEEDS = 2**31 - 2  # what Keras on TensorFlow takes a seed modulo
# Multiples of the golden section of that number are far apart: at 512 replicas, 2.5 million draws.
_STRIDE = 1327217909


class SeedGenerator(keras.random.SeedGenerator):
    """Seeds of a layer's random draws, other ones on each replica of `tf.distribute`.

    Keras uses the same seed, and so the same dropout mask, on every replica (keras issue 20611). On
    one device, and on the first replica, the seeds are those of `keras.random.SeedGenerator`. The
    state is the same on all replicas, so that training resumes exactly.
    """

    def next(self, ordered: bool = True) -> Any:
        seed = super().next(ordered)
        replica = replica_id()
        if isinstance(replica, int) and replica == 0:
            return seed
        offset = ops.cast(replica, seed.dtype) * _STRIDE
        return seed + ops.stack([ops.zeros_like(offset), offset])


def derived_seed(seed: int | None, index: int) -> int | None:
    """A seed for the random choice number `index` of a layer: no two of them draw alike.

    The first is `seed` itself. `None` stays `None`, which is a random seed.
    """
    return None if seed is None else (seed + index * _STRIDE) % _NUM_SEEDS if index else seed
