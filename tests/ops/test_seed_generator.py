"""Seeds that differ between replicas."""

import keras
import numpy as np

from keras_drill.ops import seed_generator
from keras_drill.ops.seed_generator import SeedGenerator


def test_every_replica_draws_with_seeds_of_its_own(monkeypatch):
    seeds = []
    for replica in (0, 1, 2, np.int32(0), np.int32(2)):
        monkeypatch.setattr(seed_generator, "replica_id", lambda replica=replica: replica)
        generator = SeedGenerator(11)
        seeds.append([np.asarray(generator.next()).tolist() for _ in range(2)])
    one_device, second, third, *tensors = seeds
    assert tensors == [one_device, third]
    assert len({tuple(seed) for found in (one_device, second, third) for seed in found}) == 6


def test_the_first_seeds_are_those_of_keras():
    ours, theirs = SeedGenerator(11), keras.random.SeedGenerator(11)
    for _ in range(2):
        np.testing.assert_array_equal(ours.next(), theirs.next())
