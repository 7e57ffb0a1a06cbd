"""Counts the words of a text."""

import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from keras_drill.data.vocabulary import Vocabulary


class WordNumbers:
    """Numbers the words of a text in the order of their first occurrence, and counts them.

    With `keep_in`, the object stores the text as these numbers. So `encoded` can return the text as
    ids of a vocabulary without tokenizing it again. Call `close` at the end.

    Args:
        keep_in: Folder for a temporary file with the text; `None` to store nothing.

    Attributes:
        num_lines: Number of lines.

    Example:

    >>> numbers = WordNumbers()
    >>> numbers.add(tf.ragged.constant([["the", "cat"], ["the", "dog"]]))
    >>> numbers.words, numbers.counts
    ([b'the', b'cat', b'dog'], array([2, 1, 1]))
    """

    def __init__(self, keep_in: str | os.PathLike | None = None):
        self.num_lines = 0
        self._numbers: dict[bytes, int] = {}
        self._counts = np.zeros(0, np.int64)
        # Much faster than a dictionary. Rebuilt whenever the number of words has doubled.
        self._table: Any = None
        self._in_table = 0
        self._file: Any = None
        if keep_in is not None:
            self._file = tempfile.TemporaryFile(dir=str(keep_in))  # noqa: SIM115  the owner closes the file
        self._blocks: list[tuple[int, int]] = []

    @property
    def words(self) -> list[bytes]:
        """The words, in the order of their numbers."""
        return list(self._numbers)

    @property
    def counts(self) -> np.ndarray:
        """Int64 array with the count of each word, in the order of `words`."""
        return self._counts[: len(self._numbers)]

    @property
    def kept(self) -> bool:
        """Whether the text is stored for `encoded`."""
        return bool(self._blocks)

    def add(self, words: tf.RaggedTensor) -> None:
        """Adds lines of words, a ragged string tensor `[L, (T)]`."""
        ids = self._number(words.flat_values)
        found = np.bincount(ids)
        if len(self._numbers) > len(self._counts):
            self._counts = np.append(self._counts, np.zeros(len(self._numbers), np.int64))
        self._counts[: len(found)] += found
        lengths = words.row_lengths().numpy()
        self.num_lines += len(lengths)
        if self._file is not None:
            self._file.write(ids.astype(np.int32).tobytes())
            self._file.write(lengths.astype(np.int32).tobytes())
            self._blocks.append((len(ids), len(lengths)))

    def encoded(self, vocabulary: "Vocabulary") -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the ids and line lengths of the stored text, block by block."""
        ids_of = vocabulary.ids(tf.constant(self.words)).numpy()
        self._file.seek(0)
        for num_ids, num_lines in self._blocks:
            numbers = np.frombuffer(self._file.read(4 * num_ids), np.int32)
            lengths = np.frombuffer(self._file.read(4 * num_lines), np.int32)
            yield with_ends(ids_of[numbers], lengths, vocabulary.end_id)

    def close(self) -> None:
        """Removes the stored text."""
        if self._file is not None:
            self._file.close()

    def _number(self, words: tf.Tensor) -> np.ndarray:
        """Returns the numbers of words `[N]`. New words get new numbers."""
        ids = np.full(len(words), -1) if self._table is None else self._table.lookup(words).numpy()
        others = np.flatnonzero(ids < 0)
        if not len(others):
            return ids
        unique, places = tf.unique(tf.gather(words, others))
        numbers = self._numbers
        found = [numbers.setdefault(word, len(numbers)) for word in unique.numpy().tolist()]
        ids = ids.copy()
        ids[others] = np.array(found)[places.numpy()]
        if len(numbers) > 2 * self._in_table:
            self._in_table = len(numbers)
            with tf.device("CPU"):  # string tensors must be on the CPU
                pairs = tf.lookup.KeyValueTensorInitializer(
                    tf.constant(self.words), tf.range(self._in_table, dtype=tf.int64)
                )
                self._table = tf.lookup.StaticHashTable(pairs, -1)
        return ids


def with_ends(ids: np.ndarray, lengths: np.ndarray, end_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Adds an end token to each line. Returns the new ids and lengths.

    >>> with_ends(np.array([5, 6, 7]), np.array([2, 0, 1]), end_id=1)
    (array([5, 6, 1, 1, 7, 1], dtype=int32), array([3, 1, 2], dtype=int32))
    """
    lengths = (lengths + 1).astype(np.int32)
    ends = np.cumsum(lengths) - 1
    ended = np.empty(len(ids) + len(lengths), np.int32)
    is_word = np.ones(len(ended), bool)
    is_word[ends] = False
    ended[ends] = end_id
    ended[is_word] = ids
    return ended, lengths
