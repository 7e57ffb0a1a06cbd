"""Encodes a text as token ids once, and caches the ids as TFRecords."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_drill.data.checks import check_is, shown
from keras_drill.data.file_lock import file_lock
from keras_drill.data.lines import Lines, as_lines
from keras_drill.data.read_json import read_json
from keras_drill.data.tokenizer import Tokenizer
from keras_drill.data.untuned import untuned
from keras_drill.data.vocabulary import Vocabulary
from keras_drill.data.word_numbers import with_ends

_FORMAT = 1  # part of the fingerprint: increase it when the meaning of the records changes
_LINES_PER_RECORD = 4096
_TOKENS_PER_SHARD = 1 << 23
_FEATURES = {
    "ids": tf.io.FixedLenFeature([], tf.string),
    "line_lengths": tf.io.FixedLenFeature([], tf.string),
}


class EncodedText:
    """Token ids of a text in memory, with an end token after each line (also after empty lines).

    The class method `encode` makes an `EncodedText` from lines, a tokenizer and a vocabulary. For
    texts that are larger than memory, use `StreamedText`.

    Args:
        ids: Int array `[N]`, the N ids of the concatenated lines.
        line_lengths: Int array `[L]`, number of tokens of each of the L lines with its end token;
            the sum is `N`.

    Attributes:
        ids: int32 array `[N]`.
        line_lengths: int32 array `[L]`.

    Example:

    >>> from keras_drill.data import EncodedText, TextLines, Vocabulary, WhitespaceTokenizer
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "a.txt").write_text("the cat\\n\\nthe dog\\n")
    >>> vocabulary = Vocabulary(["<unk>", "<eos>", "the", "cat"])
    >>> text = EncodedText.encode(
    ...     TextLines(folder / "a.txt"), WhitespaceTokenizer(), vocabulary, cache=folder / "cache"
    ... )
    >>> text.ids, text.line_lengths
    (array([2, 3, 1, 1, 2, 0, 1], dtype=int32), array([3, 1, 3], dtype=int32))
    """

    def __init__(self, ids: np.ndarray, line_lengths: np.ndarray):
        self.ids = as_ids(ids)
        self.line_lengths = as_ids(line_lengths, "line_lengths")
        if (self.line_lengths < 1).any():
            raise ValueError(
                "`line_lengths` must be at least 1, because each line has an end token. "
                f"Received: line_lengths={shown(line_lengths)}"
            )
        if self.line_lengths.sum(dtype=np.int64) != len(self.ids):
            raise ValueError(
                "`line_lengths` must sum to the number of `ids`. "
                f"Received: ids of shape {self.ids.shape}, line_lengths summing to "
                f"{self.line_lengths.sum(dtype=np.int64)}"
            )

    @classmethod
    def encode(
        cls,
        lines: Lines | Iterable[str | bytes],
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        cache: str | os.PathLike | None = None,
        verbose: int = 0,
    ) -> "EncodedText":
        """Encodes a text, or reads the encoded text from the cache.

        The cache is used if the lines, the tokenizer and the vocabulary are the same as before. An
        entry of the cache is a folder of TFRecord shards, whose name is a fingerprint (hash) of
        these three. The folder is written under a temporary name and renamed, so a killed process
        leaves no incomplete entry. If several processes encode the same text, one of them encodes
        and the others wait.

        Args:
            lines: The text, such as `TextLines(path)`, or a list of strings.
            tokenizer: Tokenizer that splits the lines into words.
            vocabulary: Vocabulary that maps words to ids.
            cache: Folder of the cache, created if necessary; `None` for no cache. Several texts may
                share the folder.
            verbose: 1 to show progress.
        """
        lines = as_lines(lines)
        check_coders(tokenizer, vocabulary)
        if cache is None:
            return cls._join(encode_blocks(lines, tokenizer, vocabulary, verbose), lines)
        name = encoded_fingerprint(lines, tokenizer, vocabulary)
        folder = Path(cache) / name
        if folder.exists():
            return cls.load(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(folder.with_suffix(".lock")):
            if folder.exists():
                return cls.load(folder)
            for leftover in folder.parent.glob(f".{name}.*"):
                shutil.rmtree(leftover)
            text = cls._join(encode_blocks(lines, tokenizer, vocabulary, verbose), lines)
            beside = tempfile.mkdtemp(prefix=f".{name}.", dir=folder.parent)
            text.save(Path(beside) / name)
            os.rename(Path(beside) / name, folder)
            os.rmdir(beside)
        return text

    def save(self, folder: str | os.PathLike) -> None:
        """Writes the text to a folder that does not exist yet, as TFRecord shards and a JSON file.
        `load` reads the folder.
        """
        folder = Path(folder)
        folder.mkdir(parents=True)
        ends = np.concatenate([[0], np.cumsum(self.line_lengths, dtype=np.int64)])
        num_shards = max(-(-len(self.ids) // _TOKENS_PER_SHARD), 1)
        lines_per_shard = -(-len(self.line_lengths) // num_shards)
        for shard in range(num_shards):
            path = folder / f"shard-{shard:05d}-of-{num_shards:05d}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                last = min((shard + 1) * lines_per_shard, len(self.line_lengths))
                for line in range(shard * lines_per_shard, last, _LINES_PER_RECORD):
                    stop = min(line + _LINES_PER_RECORD, last)
                    writer.write(
                        _record(self.ids[ends[line] : ends[stop]], self.line_lengths[line:stop])
                    )
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        description = {
            "format": _FORMAT,
            "num_tokens": len(self.ids),
            "num_lines": len(self.line_lengths),
            "num_shards": num_shards,
        }
        with open(folder / "description.json", "w", encoding="utf-8") as file:
            json.dump(description, file, indent=2)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "EncodedText":
        """Reads the folder that `save` wrote.

        Raises:
            FileNotFoundError: The folder is not an encoded text.
            ValueError: The folder is damaged.
        """
        expected = read_json(Path(folder) / "description.json")
        try:
            ids, lengths = zip(*cls.records(folder).as_numpy_iterator(), strict=True)
            text = cls(np.concatenate(ids), np.concatenate(lengths))
        except (tf.errors.OpError, ValueError) as error:
            raise _damaged(folder, f"its records cannot be read: {error}") from error
        found = {"num_tokens": len(text.ids), "num_lines": len(text.line_lengths)}
        for name, number in found.items():
            if expected.get(name) != number:
                raise _damaged(folder, f"{name} must be {expected.get(name)} but is {number}")
        if text.ids.min(initial=0) < 0:
            raise _damaged(folder, "it has negative token ids")
        return text

    @staticmethod
    def records(folder: str | os.PathLike) -> tf.data.Dataset:
        """Returns a dataset of the records of a folder that `save` wrote, in order.

        A record has the n tokens of l consecutive lines: `(ids [n], line_lengths [l])`, both int32.
        Use this method if the text does not fit in memory, and `load` otherwise.
        """
        files = sorted(str(path) for path in Path(folder).glob("shard-*.tfrecord"))
        if not files:
            raise FileNotFoundError(
                "`folder` must contain an encoded text, files 'shard-*.tfrecord'. "
                f"Received: folder={str(folder)!r}"
            )

        def parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            features = tf.io.parse_single_example(record, _FEATURES)
            return (
                tf.io.decode_raw(features["ids"], tf.int32),
                tf.io.decode_raw(features["line_lengths"], tf.int32),
            )

        return untuned(tf.data.TFRecordDataset(files).map(parse, tf.data.AUTOTUNE))

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def _join(cls, blocks: Iterator[tuple[np.ndarray, np.ndarray]], lines: Lines) -> "EncodedText":
        both = list(blocks)
        if not both:
            raise ValueError(f"The text has no lines. Received: {lines.origin}")
        ids, lengths = zip(*both, strict=True)
        text = cls(np.concatenate(ids), np.concatenate(lengths))
        if len(text.ids) == len(text.line_lengths):
            raise ValueError(f"The text holds no words, only empty lines. Received: {lines.origin}")
        return text


def as_ids(ids: Any, name: str = "ids") -> np.ndarray:
    """Converts integers to an int32 array with one axis. For an `EncodedText`, returns its ids.

    Args:
        ids: An `EncodedText`, an array or a list.
        name: Name of the argument, for errors.
    """
    if isinstance(ids, EncodedText):
        return ids.ids
    try:
        array = np.asarray(ids)
    except ValueError:  # lists of different lengths
        array = np.zeros([1, 1])
    is_number = np.issubdtype(array.dtype, np.number)
    if array.ndim != 1 or not is_number or (array != np.round(array)).any():
        raise ValueError(
            f"`{name}` must be a one-dimensional array or a list of integers. "
            f"Received: {name}={shown(ids)}"
        )
    limits = np.iinfo(np.int32)
    if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
        raise ValueError(f"`{name}` must fit into int32. Received: {name}={shown(ids)}")
    return array.astype(np.int32, copy=False)


def check_coders(tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
    """Raises `ValueError` if the arguments are not a `Tokenizer` and a `Vocabulary`."""
    check_is("tokenizer", tokenizer, Tokenizer, "a `Tokenizer`, such as `WordTokenizer()`")
    check_is("vocabulary", vocabulary, Vocabulary, "a `Vocabulary`")


def encode_blocks(
    lines: Lines, tokenizer: Tokenizer, vocabulary: Vocabulary, verbose: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the `ids` and `line_lengths` of an `EncodedText`, block by block."""
    progress = keras.utils.Progbar(None, verbose=verbose, unit_name="block")
    number = 0
    for number, block in enumerate(lines.tensors(_LINES_PER_RECORD), start=1):
        words = tokenizer.tokenize(block)  # [L, (T)]
        ids = vocabulary.ids(words.flat_values).numpy()
        progress.update(number, finalize=False)
        yield with_ends(ids, words.row_lengths().numpy(), vocabulary.end_id)
    progress.update(number, finalize=True)


def encoded_fingerprint(lines: Lines, tokenizer: Tokenizer, vocabulary: Vocabulary) -> str:
    """Returns a hexadecimal digest of the lines, the tokenizer and the vocabulary."""
    description = {
        "format": _FORMAT,
        "lines": lines.fingerprint(),
        "tokenizer": [type(tokenizer).__name__, tokenizer.get_config()],
        "tokens": vocabulary.tokens,
        "special": [vocabulary.unknown_id, vocabulary.end_id],
    }
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:32]


def _damaged(folder: str | os.PathLike, reason: str) -> ValueError:
    return ValueError(
        f"The encoded text is damaged: {reason}. Delete the folder and encode again. "
        f"Received: {str(folder)!r}"
    )


def _record(ids: np.ndarray, line_lengths: np.ndarray) -> bytes:
    arrays = {"ids": ids, "line_lengths": line_lengths}
    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[array.astype("<i4").tobytes()]))
        for name, array in arrays.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
