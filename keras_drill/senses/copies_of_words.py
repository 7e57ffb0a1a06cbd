"""Senses that begin as copies of their word."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

SENSES_STARTS = ("random", "copies")
# Copies of a word differ by this share of the labels' size: enough for them to part in training,
# and with shares d whose mean is 0, log mean exp(h . d) is only (h . d)^2 / 2.
_APART = 3e-4


def check_senses_start(senses_start: str) -> None:
    """Raises `ValueError` for a start that there is none of."""
    if senses_start not in SENSES_STARTS:
        raise ValueError(
            f"`senses_start` must be one of {SENSES_STARTS}. "
            f"Received: senses_start={senses_start!r}"
        )


def copies_of_words(labels: np.ndarray, sense_to_word: np.ndarray) -> np.ndarray:
    """A label for every sense: that of its word, moved a little, by 0 in the mean of a word.

    Args:
        labels: `[V, d]`, of the words.
        sense_to_word: `[M]` integers.

    Returns:
        `[M, d]`, of the dtype of `labels`. Of words with one sense each, the labels themselves.
    """
    copies = labels[sense_to_word]
    if len(sense_to_word) > len(labels) and labels.size:
        size = _APART * np.sqrt(np.mean(np.square(labels, dtype="float64")))
        shift = size * np.random.default_rng(0).normal(size=copies.shape)
        counts = np.bincount(sense_to_word)
        sums = [np.bincount(sense_to_word, column) for column in shift.T]
        means = np.stack(sums, 1) / counts[:, None]
        copies = copies + (shift - means[sense_to_word])
    return copies.astype(labels.dtype)


def bias_of_copies(sense_to_word: np.ndarray) -> np.ndarray:
    """Float64 `[M]`: -log of the number of senses of a sense's word, or 0 where all have as many.

    With it, words have the probability that one sense would have.
    """
    counts = np.bincount(sense_to_word)
    if counts.min() == counts.max():
        return np.zeros(len(sense_to_word))
    return -np.log(counts)[sense_to_word]


def labels_start(initializer: Any, allocation: Any, senses_start: str) -> Callable:
    """An initializer of the labels `[M, d]` of senses.

    Args:
        initializer: Of the labels where `senses_start` is "random", else of words.
        allocation: `SenseAllocation`, in which no sense has moved yet.
        senses_start: "random" or "copies".
    """
    if senses_start == "random":
        return initializer

    def start(shape, dtype=None):
        words = initializer((allocation.vocabulary_size, *shape[1:]), dtype=dtype)
        words = keras.ops.convert_to_numpy(keras.ops.cast(words, "float32"))
        copies = copies_of_words(words, allocation.initial_sense_to_word)
        return keras.ops.convert_to_tensor(copies, dtype)

    return start


def bias_start(initializer: Any, allocation: Any, senses_start: str) -> Callable:
    """An initializer of the biases of senses; arguments as in `labels_start`."""
    if senses_start == "random":
        return initializer

    def start(shape, dtype=None):
        shift = bias_of_copies(allocation.initial_sense_to_word).astype("float32")
        return initializer(shape, dtype=dtype) + keras.ops.convert_to_tensor(shift, dtype)

    return start
