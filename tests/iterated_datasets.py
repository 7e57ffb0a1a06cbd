"""Which datasets a test reads."""

import pytest
import tensorflow as tf


def iterated_datasets(monkeypatch: pytest.MonkeyPatch) -> list[tf.data.Dataset]:
    """A list to which every dataset is added whose reading begins from now on."""
    iterated = []
    iterate = tf.data.Dataset.__iter__

    def record(dataset):
        iterated.append(dataset)
        return iterate(dataset)

    monkeypatch.setattr(tf.data.Dataset, "__iter__", record)
    return iterated
