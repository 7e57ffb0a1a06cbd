import os
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import WhitespaceTokenizer
from keras_drill.data.serialize_examples import serialize_examples
from keras_drill.export import export_saved_model
from tests.export.checks import (
    check_operations,
    check_same_answers,
    meta_graph,
    warmup_requests,
)

PROMPTS = ["The cat sat on a mat.", "", "an unknown zebra, é!\nThe dog ran (here)\n", "the " * 211]
SIGNATURES = {"serving_default", "continue", "sample", "score", "top_k", "examples"}


def requests():
    """`(signature, inputs)` pairs: the prompts together, one by one, and none."""
    for prompts in (PROMPTS, *[[prompt] for prompt in PROMPTS], []):
        texts = np.array([prompt.encode() for prompt in prompts], dtype="S")
        count = len(prompts)
        for signature in ("continue", "serving_default"):
            yield signature, {"prompts": texts}
        for signature in ("score", "top_k"):
            yield signature, {"texts": texts}
        # The last feature is not empty: NumPy drops NUL bytes at the end of a string.
        columns = dict.fromkeys(("text", "prompt"), texts.tolist())
        examples = serialize_examples({**columns, "z": [b"."] * count})
        yield "examples", {"examples": np.array(examples, dtype="S")}
        yield (
            "sample",
            {
                "prompts": texts,
                "max_new_tokens": np.full(count, 7, "int32"),
                "temperature": np.full(count, 0.8, "float32"),
                "top_k": np.full(count, 5, "int32"),
                "top_p": np.full(count, 0.9, "float32"),
                "min_p": np.full(count, 0.01, "float32"),
                "seed": np.arange(count, dtype="int64"),
            },
        )


@pytest.mark.slow
def test_another_process_answers_byte_for_byte_without_keras(folder, text_model, tmp_path):
    (signatures,) = check_same_answers([(text_model, folder, list(requests()))], tmp_path)
    assert signatures == sorted(SIGNATURES)


@pytest.mark.slow
def test_signatures_have_the_batch_first_and_free(folder):
    signatures = dict(meta_graph(folder).signature_def)
    signatures.pop("__saved_model_init_op")
    assert set(signatures) == SIGNATURES
    for signature in signatures.values():
        for tensor in [*signature.inputs.values(), *signature.outputs.values()]:
            assert tensor.tensor_shape.dim[0].size == -1
        assert not any(name.endswith("_bytes") for name in signature.outputs)  # base64 in REST
    assert set(signatures["continue"].inputs) == {"prompts"}
    assert signatures["top_k"].outputs["words"].tensor_shape.dim[1].size == 3


@pytest.mark.slow
def test_only_operations_that_a_stock_server_has(folder):
    check_operations(folder)


@pytest.mark.slow
def test_only_weights_of_inference(folder, model):
    shapes = sorted(
        tuple(shape)
        for name, shape in tf.train.list_variables(str(folder / "variables" / "variables"))
        if name != "_CHECKPOINTABLE_OBJECT_GRAPH"
    )
    backbone = [tuple(weight.shape) for weight in model.backbone.trainable_variables]
    assert shapes == sorted([*backbone, (23, 5), (23,)])  # the constant labels and their bias


def test_assets(folder, vocabulary):
    text = (folder / "assets" / "vocabulary.txt").read_text(encoding="utf-8")
    assert text.split("\n")[:-1] == list(vocabulary.tokens)


def test_batching_parameters_are_what_the_server_reads(folder):
    """The fields of `tensorflow.serving.BatchingParameters`, wrapped numbers, in text format."""
    lines = (folder / "batching_params.pbtxt").read_text(encoding="utf-8").splitlines()
    values = dict(
        re.fullmatch(r"(\w+) \{ value: (\d+) \}", line).groups()
        for line in lines
        if not line.startswith("#")
    )
    assert {name: int(value) for name, value in values.items()} == {
        "max_batch_size": 32,
        "batch_timeout_micros": 2000,
        "max_enqueued_batches": 64,
        "num_batch_threads": 4,
    }


@pytest.mark.slow
def test_warmup_requests_are_answered(folder):
    loaded = tf.saved_model.load(str(folder))
    seen = set()
    for signature, inputs in warmup_requests(folder):
        assert loaded.signatures[signature](**inputs)
        seen.add(signature)
    assert seen == SIGNATURES - {"serving_default"}


@pytest.fixture
def export(model, vocabulary, monkeypatch):
    """Exports without tracing or writing the model: only the folders matter."""

    def save(module, folder, signatures, options):
        os.makedirs(folder)
        Path(folder, "saved_model.pb").write_bytes(b"")

    monkeypatch.setattr(tf.saved_model, "save", save)
    monkeypatch.setattr("keras_drill.export.text_model.TextModel.signatures", lambda self: {})
    return lambda directory, **settings: export_saved_model(
        model, directory, WhitespaceTokenizer(), vocabulary, **{"k": 1, **settings}
    )


def test_versions_follow_one_another(export, tmp_path):
    directory = tmp_path / "deep" / "name"
    assert export(directory).name == "1"
    (directory / "notes").mkdir()
    assert export(directory, version=7) == directory / "7"
    assert export(directory).name == "8"
    assert sorted(path.name for path in directory.iterdir()) == ["1", "7", "8", "notes"]


def test_a_version_is_never_overwritten(export, tmp_path):
    export(tmp_path, version=3)
    (tmp_path / "3" / "mine").touch()
    with pytest.raises(FileExistsError, match=r"Received: version=3"):
        export(tmp_path, version=3)
    assert (tmp_path / "3" / "mine").exists()


@pytest.mark.parametrize("version", [0, -1, "1", 1.0])
def test_a_version_is_a_positive_integer(export, tmp_path, version):
    with pytest.raises(ValueError, match="`version` must be a positive integer"):
        export(tmp_path, version=version)


def test_another_export_may_take_the_version_in_the_meantime(export, tmp_path, monkeypatch):
    rename = os.rename

    def rename_after_another(source, target):
        monkeypatch.setattr(os, "rename", rename)
        target.mkdir()
        (target / "saved_model.pb").touch()
        rename(source, target)

    monkeypatch.setattr(os, "rename", rename_after_another)
    assert export(tmp_path).name == "2"


@pytest.mark.parametrize("place", ["save", "rename"])
def test_what_ends_half_way_leaves_no_version(export, tmp_path, monkeypatch, place):
    def interrupted(*args, **kwargs):
        # What a kill at this moment would leave behind.
        assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
        raise KeyboardInterrupt

    monkeypatch.setattr(tf.saved_model if place == "save" else os, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(tmp_path)
    assert list(tmp_path.iterdir()) == []
