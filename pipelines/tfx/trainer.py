"""Trainer: trains a model on transformed examples and exports it."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

from keras_drill.data.lines import Lines
from keras_drill.data.untuned import untuned
from keras_drill.workbench.tasks.task import RunVocabulary, Task
from keras_drill.workbench.training.export_run import export_run
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.train_run import prepare_process, train_run
from pipelines.components.transform import Transform
from pipelines.tfx.settings import LINE, Settings
from pipelines.tfx.transform import GivenLines


def run_fn(fn_args: Any) -> None:
    """Trains and exports a model. TFX's Trainer calls this function."""
    settings = Settings.from_mapping(fn_args.custom_config)
    transformed = tft.TFTransformOutput(fn_args.transform_graph_path)
    with tempfile.TemporaryDirectory() as local:
        examples, run = Path(local) / "transformed", Path(local) / "run"
        task = settings.task(**{"data.path": str(examples)})
        run_vocabulary = read_words(task, transformed, Path(local) / "words")
        splits = {
            "train": read_lines(task, fn_args.train_files),
            "valid": read_lines(task, fn_args.eval_files),
        }
        Transform(task).write(run_vocabulary, splits, examples, lambda done, unit, total=None: None)
        prepare_process(task.config)
        train_run(task.config, RunFolder(run))
        exported = export_run(LoadedRun.load(RunFolder(run)), Path(local) / "exported")
        copy_folder(exported, fn_args.serving_model_dir)
        copy_folder(run, f"{fn_args.model_run_dir}/run")


def read_words(task: Task, transformed: tft.TFTransformOutput, folder: Path) -> RunVocabulary:
    """Loads the vocabulary that the component Transform built."""
    folder.mkdir()
    for name in task.config.word_files:
        content = tf.io.gfile.GFile(transformed.vocabulary_file_by_name(name), "rb").read()
        if content:
            (folder / name).write_bytes(content)
    return task.load_vocabulary(folder)


def read_lines(task: Task, patterns: Sequence[str]) -> dict[str, Lines]:
    """Reads the texts of transformed examples by column, in the order of the corpus."""
    files = [file for pattern in patterns for file in sorted(tf.io.gfile.glob(pattern))]
    spec = {name: tf.io.FixedLenFeature([], tf.string) for name in task.columns}
    spec[LINE] = tf.io.FixedLenFeature([], tf.int64)
    rows: list[tuple] = []
    examples = tf.data.TFRecordDataset(files, compression_type="GZIP")
    for block in untuned(examples.batch(4096)):
        parsed = tf.io.parse_example(block, spec)
        columns = [parsed[name].numpy().tolist() for name in (LINE, *task.columns)]
        rows += zip(*columns, strict=True)
    rows.sort()
    return {name: GivenLines([row[i + 1] for row in rows]) for i, name in enumerate(task.columns)}


def copy_folder(source: Path, target: str) -> None:
    """Copies a folder to a path of TFX, which may be in a remote file system."""
    for path in source.rglob("*"):
        to = f"{target}/{path.relative_to(source)}"
        if path.is_dir():
            tf.io.gfile.makedirs(to)
        else:
            tf.io.gfile.makedirs(to.rpartition("/")[0])
            with path.open("rb") as file, tf.io.gfile.GFile(to, "wb") as copy:
                shutil.copyfileobj(file, copy, 1 << 20)
