"""Damage to files with numbers in them: found, or without effect."""

import functools
import gzip
import json
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

import keras_drill
from keras_drill.data import EncodedText
from keras_drill.data.example_folder import ExampleFolder
from keras_drill.data.write_examples import ExampleWriter
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.loaded_run import _best_model
from keras_drill.workbench.training.run_folder import RunFolder
from tests.fuzz.damage import CHANGES, JSON, change, clear_errors, replace_inside
from tests.fuzz.fuzzed import fuzzed


@fuzzed(50, name=st.sampled_from(["arrays.npz", "state.json", "checksums.json"]), changes=CHANGES)
def test_checkpoints(folder, name, changes):
    store = CheckpointStore(folder)
    arrays, state = {"a": np.arange(5.0), "b": np.array(3)}, {"training": {"epoch": 1}}
    for step in (1, 2):
        shutil.rmtree(folder / f"step-{step:08d}", ignore_errors=True)
        store.save(step, arrays, state)
    path = folder / "step-00000002" / name
    path.write_bytes(change(path.read_bytes(), changes))
    with clear_errors(RunError):
        store.progress()
    found, told = store.load_latest()
    np.testing.assert_array_equal(found["a"], np.arange(5.0))
    assert found["b"] == 3 and told == state
    np.testing.assert_array_equal(CheckpointStore(folder).mean(2, ["a"])["a"], np.arange(5.0))


@fuzzed(12, changes=CHANGES, inside=st.booleans())
def test_example_folders(folder, changes, inside):
    shutil.rmtree(folder / "Split-train", ignore_errors=True)
    with ExampleWriter(folder, "train") as writer:
        ids = np.array([2, 300, 1]), np.array([2, 1])
        writer.write({"text": [b"the cat", b"the dog"], "text_ids": ids})
    (path,) = (folder / "Split-train").iterdir()
    content = path.read_bytes()
    content = gzip.decompress(content) if inside else content
    content = change(content, changes)
    path.write_bytes(gzip.compress(content) if inside else content)
    with clear_errors(ValueError):
        assert set(ExampleFolder(folder).lines("train", "text")) <= {b"the cat", b"the dog"}
    with clear_errors(ValueError):
        assert set(ExampleFolder(folder).encoded("train", "text").ids) <= {2, 300, 1}


@fuzzed(20, content=st.binary(max_size=30), words=JSON)
def test_examples_of_anything(folder, content, words):
    """Whole TFRecords that hold something else."""
    shutil.rmtree(folder / "Split-train", ignore_errors=True)
    (folder / "Split-train").mkdir()
    options = tf.io.TFRecordOptions(compression_type="GZIP")
    path = folder / "Split-train" / "data_tfrecord-00000-of-00001.gz"
    with tf.io.TFRecordWriter(str(path), options) as writer:
        writer.write(content)
    (folder / "encoding.json").write_text(json.dumps(words))
    examples = ExampleFolder(folder)
    with clear_errors(ValueError):
        list(examples.lines("train", "text"))
    with clear_errors(ValueError):
        assert isinstance(examples.encoded_by, str)


@fuzzed(12, name=st.sampled_from(["shard", "description.json", "record"]), changes=CHANGES)
def test_encoded_texts(folder, name, changes):
    shutil.rmtree(folder / "encoded", ignore_errors=True)
    EncodedText(np.array([3, 4, 1, 1], "int32"), np.array([3, 1], "int32")).save(folder / "encoded")
    (shard,) = (folder / "encoded").glob("shard-*")
    if name == "record":
        (record,) = tf.data.TFRecordDataset(str(shard)).as_numpy_iterator()
        with tf.io.TFRecordWriter(str(shard)) as writer:
            writer.write(change(record, changes))
    else:
        path = shard if name == "shard" else folder / "encoded" / name
        path.write_bytes(change(path.read_bytes(), changes))
    with clear_errors(ValueError):
        text = EncodedText.load(folder / "encoded")
        assert text.line_lengths.sum() == len(text.ids) == 4
        assert text.line_lengths.min() > 0 and text.ids.min() >= 0


_MEMBERS = ("whole", "config.json", "metadata.json", "model.weights.h5", "values")


@functools.cache
def model_file():
    """The bytes of a model's file, and of its members by name."""
    model = keras_drill.LanguageModel(
        keras_drill.models.AWDLSTM(11, 3, 2, 1), keras_drill.OutputLayer(11)
    )
    model(np.zeros((2, 3), "int32"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        with zipfile.ZipFile(path) as file:
            return path.read_bytes(), {name: file.read(name) for name in file.namelist()}


@fuzzed(8, name=st.sampled_from(_MEMBERS), changes=CHANGES, number=st.integers(0, 999), value=JSON)
def test_model_files(folder, name, changes, number, value):
    run = RunFolder(folder)
    content, members = model_file()
    if name == "whole":
        run.model_file.write_bytes(change(content, changes))
    else:
        if name == "values":
            document = replace_inside(json.loads(members["config.json"]), number, value)
            members = {**members, "config.json": json.dumps(document).encode()}
        else:
            members = {**members, name: change(members[name], changes)}
        with zipfile.ZipFile(run.model_file, "w") as file:
            for member, inside in members.items():
                file.writestr(member, inside)
    with clear_errors(RunError):
        assert isinstance(_best_model(run), keras_drill.LanguageModel)
