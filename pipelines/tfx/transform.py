"""Transform: builds the vocabulary of the model from the whole training text."""

import hashlib
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from keras_drill.data.lines import Lines
from pipelines.tfx.settings import LINE, Settings


def preprocessing_fn(inputs: Mapping[str, Any], custom_config: Mapping[str, Any]) -> dict:
    """Returns the texts unchanged and stores the files of the vocabulary as assets.

    The transform graph does not tokenize texts. The exported model does, so that serving cannot
    differ from training.
    """
    settings = Settings.from_mapping(custom_config)
    task = settings.task()
    columns = {name: _dense(inputs[name]) for name in (*task.columns, LINE)}
    names = sorted(task.config.word_files)
    tft.experimental.ptransform_analyzer(
        list(columns.values()),
        LearnWords(settings),
        [tf.string] * len(names),
        [[]] * len(names),
        output_asset_default_values=[b""] * len(names),
    )
    for name in names:
        tft.annotate_asset(name, name)
    return columns


def _dense(column: Any) -> tf.Tensor:
    """Returns a column with one value per row as a tensor `[B]`."""
    if isinstance(column, tf.SparseTensor):
        column = tf.sparse.to_dense(column)
    return tf.squeeze(column, axis=-1)


class LearnWords(beam.PTransform):
    """Builds the vocabulary of texts with line numbers. Outputs the paths of the vocabulary files.

    Subword models need the whole text at once, so a single worker processes it.
    """

    def __init__(self, settings: Settings):
        super().__init__()
        self.settings = settings

    def expand(self, batches: beam.pvalue.PCollection) -> tuple:
        folder = (
            batches
            | "Rows" >> beam.FlatMap(_rows)
            | "All" >> beam.combiners.ToList()
            | "Learn" >> beam.Map(learn_words, self.settings)
        )
        return tuple(
            folder | f"Path[{name}]" >> beam.Map(_path, name)
            for name in sorted(self.settings.task().config.word_files)
        )


def _rows(batch: tuple) -> Iterable[tuple]:
    """Converts a batch of columns to rows that begin with the number of the line."""
    *texts, lines = (np.ravel(column).tolist() for column in batch)
    return list(zip(lines, *texts, strict=True))


def _path(folder: str, name: str) -> np.ndarray:
    return np.array(f"{folder}/{name}".encode(), object)


def learn_words(rows: Iterable[tuple], settings: Settings) -> str:
    """Builds the vocabulary of a training text and returns the folder with its files."""
    task = settings.task()
    _, *columns = zip(*sorted(rows), strict=True)
    shared = f"{settings.shared}/words-{uuid.uuid4().hex}"
    tf.io.gfile.makedirs(shared)
    lines = {name: GivenLines(column) for name, column in zip(task.columns, columns, strict=True)}
    with tempfile.TemporaryDirectory() as local:
        task.learn_words(lines).save(Path(local))
        for name in task.config.word_files:
            path = Path(local) / name  # an empty file of the vocabulary is not written
            content = path.read_bytes() if path.exists() else b""
            with tf.io.gfile.GFile(f"{shared}/{name}", "wb") as file:
                file.write(content)
    return shared


class GivenLines(Lines):
    """Lines in memory.

    Args:
        lines: The lines.
    """

    def __init__(self, lines: Sequence[bytes]):
        self.lines = lines

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        for start in range(0, len(self.lines), size):
            yield list(self.lines[start : start + size])

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for line in self.lines:
            digest.update(line + b"\n")
        return digest.hexdigest()
