"""The same pipeline by TFX's runner and by this repository's."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  words are cut by its operations
from tfx import v1 as tfx

from benchmarks import tfx_pipeline
from keras_drill.data.example_folder import ExampleFolder
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.train_run import train_run
from pipelines.components.example_gen import ExampleGen
from pipelines.components.transform import Transform
from pipelines.tfx import kubeflow
from pipelines.tfx.make_pipeline import Place, make_pipeline
from pipelines.tfx.settings import LINE
from pipelines.tfx.trainer import read_lines
from tests.iterated_datasets import iterated_datasets
from tests.pipelines.corpora import tiny_task

SPLITS = ("train", "valid", "test")


def run_tfx(config, folder, worst=1e5):
    place = Place("tiny", str(folder / "tfx"), str(folder / "served"), worst)
    (folder / "tfx").mkdir(exist_ok=True)
    metadata = tfx.orchestration.metadata.sqlite_metadata_connection_config(
        str(folder / "tfx" / "metadata.db")
    )
    pipeline = make_pipeline(
        config,
        config.data.path,
        SPLITS,
        place,
        metadata,
        beam_arguments=["--direct_running_mode=in_memory"],
    )
    tfx.orchestration.LocalDagRunner().run(pipeline)


def run_components(config, folder):
    """Examples, transformed examples, and the run of their model."""
    task = make_task(config)
    examples, transformed = folder / "examples", folder / "transformed"
    for component, inputs, output in (
        (ExampleGen(task, config.data.path), {}, examples),
        (Transform(task), {"examples": examples}, transformed),
    ):
        output.mkdir()
        component.run(inputs, output, lambda done, unit, total=None: None)
    run = RunFolder(folder / "run")
    train_run(config.replace({"data.path": str(transformed)}), run)
    return examples, transformed, LoadedRun.load(run)


def only(paths):
    (path,) = paths
    return path


@pytest.mark.parametrize("task", ["language-model", "translation"])
def test_both_ways_give_the_same(task, tmp_path):
    subwords = {"data_tokenizer": "bpe"} if task == "translation" else {}
    config = tiny_task(task, tmp_path / "text", training_epochs=1, **subwords)
    run_tfx(config, tmp_path)
    examples, transformed, run = run_components(config, tmp_path)

    made = tmp_path / "tfx"
    assets = only((made / "Transform" / "transform_graph").iterdir()) / "transform_fn" / "assets"
    learned = {path.name: path.read_bytes() for path in assets.iterdir()}
    assert learned["vocabulary.txt"]
    for name, content in learned.items():
        path = transformed / name  # an asset is empty where there is no such file
        assert content == (path.read_bytes() if path.exists() else b"")

    theirs = only((made / "FileBasedExampleGen" / "examples").iterdir())
    for split in SPLITS:
        files = [str(path) for path in (theirs / f"Split-{split}").iterdir()]
        for column, lines in read_lines(run.task, files).items():
            assert list(lines) == list(ExampleFolder(examples).lines(split, column))

    other = LoadedRun.load(RunFolder(only((made / "Trainer" / "model_run").iterdir()) / "run"))
    for ours, weight in zip(run.model.weights, other.model.weights, strict=True):
        np.testing.assert_allclose(weight.numpy(), ours.numpy(), atol=1e-5, err_msg=ours.path)

    assert list((made / "Evaluator" / "blessing").rglob("BLESSED"))
    served = tf.saved_model.load(str(only((tmp_path / "served").iterdir())))
    assert "examples" in served.signatures


def test_examples_are_read_in_order_and_untuned(monkeypatch, tmp_path):
    file = str(tmp_path / "examples.gz")
    with tf.io.TFRecordWriter(file, "GZIP") as writer:
        for line, text in ((1, b"the dog"), (2, b""), (0, b"the cat")):
            example = tf.train.Example()
            example.features.feature[LINE].int64_list.value.append(line)
            example.features.feature["text"].bytes_list.value.append(text)
            writer.write(example.SerializeToString())
    task = make_task(tiny_task("language-model", tmp_path / "text"))
    iterated = iterated_datasets(monkeypatch)
    lines = read_lines(task, [file])
    assert list(lines["text"]) == [b"the cat", b"the dog", b""]
    (dataset,) = iterated
    assert dataset.options().autotune.enabled is False  # None is tuned


def test_a_worse_model_is_not_pushed(tmp_path):
    config = tiny_task("language-model", tmp_path / "text", training_epochs=1)
    run_tfx(config, tmp_path, worst=2.0)
    assert list((tmp_path / "tfx" / "Evaluator" / "blessing").rglob("NOT_BLESSED"))
    assert not (tmp_path / "served").exists()
    run_tfx(config.replace({"training.epochs": 3}), tmp_path)
    assert len(list((tmp_path / "served").iterdir())) == 1
    # The baseline is better than one that has learned nothing.
    run_tfx(config.replace({"optimizer.learning_rate": 1e-9}), tmp_path)
    assert len(list((tmp_path / "served").iterdir())) == 1


def test_it_compiles_for_kubeflow(tmp_path):
    pytest.importorskip("kfp")
    output = tmp_path / "pipeline.json"
    kubeflow.main(
        [
            "small-tied",
            "--data",
            "/gcs/bucket/corpus",
            "--root",
            "gs://bucket/root",
            "--serve-in",
            "gs://bucket/served",
            "--image",
            "image",
            "--output",
            str(output),
            "--head.kind=drill",
            "--beam=--runner=DataflowRunner",
        ]
    )
    told = json.loads(output.read_text())["pipelineSpec"]
    tasks = told["root"]["dag"]["tasks"]
    assert {"FileBasedExampleGen", "Transform", "Trainer", "Evaluator", "Pusher"} <= set(tasks)
    assert "DataflowRunner" in output.read_text()
    assert re.search(r'kind = \\+"drill', output.read_text())


def test_components_are_timed(tmp_path):
    config = tiny_task("language-model", tmp_path / "text")
    seconds = tfx_pipeline.run(config.data.path, "whitespace", tmp_path)
    assert {"FileBasedExampleGen", "StatisticsGen", "Transform"} <= seconds.keys()
    assert min(seconds["FileBasedExampleGen"], seconds["Transform"]) > 0
