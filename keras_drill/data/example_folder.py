"""Folders of `tf.Example`s, the data format of pipelines."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_drill.data.atomic import replace_file
from keras_drill.data.encoded_text import EncodedText
from keras_drill.data.lines import Lines
from keras_drill.data.read_json import read_json
from keras_drill.data.splits import SPLITS
from keras_drill.data.tokenizer import Tokenizer
from keras_drill.data.untuned import untuned
from keras_drill.data.vocabulary import Vocabulary

_BLOCK = 4096
_CHUNK = 1 << 20
_ENCODING = "encoding.json"


class ExampleFolder:
    """A folder of `tf.Example`s in gzipped TFRecords, in the layout of TFX's ExampleGen:

        Split-train/data_tfrecord-00000-of-00002.gz, ...
        Split-valid/data_tfrecord-00000-of-00001.gz
        Split-test/data_tfrecord-00000-of-00001.gz

    An example has a feature for each column: a text, or the ids of its words. `ids_of` gives the
    name of the column with ids.

    Args:
        path: The folder.

    Attributes:
        splits: Files of each existing split among train, valid and test.
        encoded_by: If the folder has ids, the `encoding_fingerprint` of their tokenizers and
            vocabularies; else `None`.

    Raises:
        ValueError: There are no examples.

    Example:

    >>> from keras_drill.data.write_examples import ExampleWriter
    >>> folder = getfixture("tmp_path")
    >>> with ExampleWriter(folder, "train") as writer:
    ...     writer.write({"text": [b"the cat", b"the dog"]})
    >>> list(ExampleFolder(folder).lines("train", "text"))
    [b'the cat', b'the dog']
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.splits = {
            split: files
            for split in SPLITS
            if (files := sorted((self.path / f"Split-{split}").glob("data_tfrecord-*.gz")))
        }
        if not self.splits:
            raise ValueError(
                "`path` must contain a folder such as 'Split-train' with examples, files "
                f"'data_tfrecord-*.gz'. Received: path={str(path)!r}"
            )

    @property
    def encoded_by(self) -> str | None:
        path = self.path / _ENCODING
        if not path.exists():
            return None
        fingerprint = read_json(path).get("words")
        if not isinstance(fingerprint, str):
            raise ValueError(
                'Expected a JSON file with the key "words", whose value is a string: the '
                "fingerprint of the tokenizers and vocabularies that encoded the examples. Encode "
                f"the examples again. Received: {str(path)!r}"
            )
        return fingerprint

    @encoded_by.setter
    def encoded_by(self, fingerprint: str) -> None:
        replace_file(self.path / _ENCODING, json.dumps({"words": fingerprint}, indent=2) + "\n")

    @staticmethod
    def ids_of(column: str) -> str:
        """Returns the name of the column with the ids of a column's words."""
        return f"{column}_ids"

    @staticmethod
    def is_at(path: str | os.PathLike) -> bool:
        """Returns whether a path is a folder of examples."""
        return any((Path(path) / f"Split-{split}").is_dir() for split in SPLITS)

    def lines(self, split: str, column: str) -> "ExampleLines":
        """Returns the texts of a column, as `Lines`."""
        return ExampleLines(self.splits[split], column)

    def encoded(self, split: str, column: str) -> EncodedText:
        """Returns the ids of a column's words, with an end token after each line."""
        column = self.ids_of(column)
        spec = {column: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)}
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for ragged in _parsed(self.splits[split], spec, column):
            ids.append(ragged.flat_values.numpy().astype(np.int32))
            lengths.append(ragged.row_lengths().numpy().astype(np.int32))
        if not sum(map(len, ids)):  # TensorFlow parses a missing feature as an empty list
            raise ValueError(
                f"The feature {column!r} of the examples is missing or empty; it must contain "
                f"token ids. Received: {str(self.splits[split][0].parent)!r}"
            )
        return EncodedText(np.concatenate(ids), np.concatenate(lengths))


def encoding_fingerprint(coders: Mapping[str, tuple[Tokenizer, Vocabulary]]) -> str:
    """Returns a hexadecimal digest of columns' tokenizers and vocabularies, by column name."""
    told = {
        column: [type(tokenizer).__name__, tokenizer.get_config(), vocabulary.tokens]
        for column, (tokenizer, vocabulary) in coders.items()
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class ExampleLines(Lines):
    """The texts of one column of examples.

    Args:
        files: Gzipped TFRecord files.
        column: Name of the feature.
    """

    def __init__(self, files: list[Path], column: str):
        self.files = files
        self.column = column

    def blocks(self, size: int = _BLOCK) -> Iterator[list[bytes]]:
        for block in self.tensors(size):
            yield block.numpy().tolist()

    def tensors(self, size: int = _BLOCK) -> Iterator[tf.Tensor]:
        spec = {self.column: tf.io.FixedLenFeature([], tf.string)}
        return _parsed(self.files, spec, self.column, size)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(self.column.encode())
        for path in self.files:
            with open(path, "rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        return digest.hexdigest()

    @property
    def origin(self) -> str:
        return str(self.files[0].parent)

    def __repr__(self) -> str:
        return f"ExampleLines({[str(file) for file in self.files]}, column={self.column!r})"


def _parsed(files: list[Path], spec: dict, column: str, size: int = _BLOCK) -> Iterator:
    records = tf.data.TFRecordDataset([str(file) for file in files], compression_type="GZIP")
    try:
        for block in untuned(records.batch(size).prefetch(2)):
            yield tf.io.parse_example(block, spec)[column]
    # TensorFlow quotes examples in its messages, which fails for examples that are not text.
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        kind = type(spec[column]).__name__
        raise ValueError(
            f"The examples have no feature {column!r} that can be read as a tf.io.{kind} of dtype "
            f"{spec[column].dtype.name}. Give another folder, or write the examples again. "
            f"Received: {str(files[0].parent)!r}"
        ) from None
    except tf.errors.DataLossError:
        raise ValueError(
            f"The examples are damaged: a file is incomplete, or was changed. Write the examples "
            f"again. Received: {str(files[0].parent)!r}"
        ) from None
