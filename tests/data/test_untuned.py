"""What reads records has no thread of TensorFlow's that tunes it and may hold up its end.

Batches are tested in tests/distribute/test_distribute_batches.py, what TFX hands over in
tests/pipelines/tfx.
"""

import numpy as np
import pytest

from keras_drill.data import EncodedText
from keras_drill.data.example_folder import ExampleFolder
from keras_drill.data.write_examples import ExampleWriter
from tests.iterated_datasets import iterated_datasets


def load_encoded_text(folder):
    EncodedText(np.array([3, 4, 1]), np.array([3])).save(folder / "text")
    return EncodedText.load(folder / "text").ids


def read_examples(folder):
    with ExampleWriter(folder, "train") as writer:
        writer.write({"text": [b"the cat", b"the dog"]})
    return list(ExampleFolder(folder).lines("train", "text"))


@pytest.mark.parametrize("read", [load_encoded_text, read_examples])
def test_records_are_read_untuned(read, monkeypatch, tmp_path):
    iterated = iterated_datasets(monkeypatch)
    assert len(read(tmp_path))
    assert iterated
    assert [dataset.options().autotune.enabled for dataset in iterated] == len(iterated) * [False]
