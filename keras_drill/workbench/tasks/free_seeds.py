"""Seeds for the random layers of a run's model."""

import itertools
from collections.abc import Iterator

import keras

from keras_drill.ops.private_interfaces import all_layers
from keras_drill.ops.seed_generator import derived_seed


def free_seeds(seed: int, backbone: keras.Layer) -> Iterator[int]:
    """Yields seeds that no random layer of `backbone` uses, starting with the run's seed if free.

    Two layers with the same seed would draw the same dropout masks.
    """
    generators = (getattr(layer, "seed_generator", None) for layer in all_layers(backbone))
    taken = {generator.get_config()["seed"] for generator in generators if generator is not None}
    for index in itertools.count():
        candidate = derived_seed(seed, index)
        if candidate is not None and candidate not in taken:
            yield candidate
