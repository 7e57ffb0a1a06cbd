"""Initializers that make all senses of a word nearly equal copies of one embedding."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

SENSES_STARTS = ("random", "copies")
# Size of the differences between a word's copies, relative to the labels' size. It is large enough
# for the copies to diverge in training. The differences d of a word have the mean 0, so they
# change the word's logit by only log mean exp(h . d), which is about (h . d)^2 / 2.
_APART = 3e-4


def check_senses_start(senses_start: str) -> None:
    """Raises `ValueError` if `senses_start` is not one of `SENSES_STARTS`."""
    if senses_start not in SENSES_STARTS:
        raise ValueError(
            f"`senses_start` must be one of {SENSES_STARTS}. "
            f"Received: senses_start={senses_start!r}"
        )


def copies_of_words(labels: np.ndarray, sense_to_word: np.ndarray) -> np.ndarray:
    """Returns a label for every sense: the label of its word plus a small random difference.

    The differences of a word's senses have the mean 0. If all words have one sense, the result is
    `labels`.

    Args:
        labels: `[V, d]`, the labels of words.
        sense_to_word: `[M]` integers, the word of every sense.

    Returns:
        `[M, d]`, in the dtype of `labels`.
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
    """Returns biases of senses that keep the probabilities of words.

    With these biases, the copies of a word together have the probability of a single sense.

    Args:
        sense_to_word: `[M]` integers, the word of every sense.

    Returns:
        Float64 `[M]`: minus the logarithm of the number of senses of the sense's word. If all words
        have equally many senses, all biases are 0.
    """
    counts = np.bincount(sense_to_word)
    if counts.min() == counts.max():
        return np.zeros(len(sense_to_word))
    return -np.log(counts)[sense_to_word]


def labels_start(initializer: Any, allocation: Any, senses_start: str) -> Callable:
    """Returns an initializer of the senses' labels `[M, d]`.

    Args:
        initializer: Initializer of the senses' labels with "random". With "copies", initializer of
            the words' labels.
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
    """Returns an initializer of the senses' biases. The arguments are those of `labels_start`."""
    if senses_start == "random":
        return initializer

    def start(shape, dtype=None):
        shift = bias_of_copies(allocation.initial_sense_to_word).astype("float32")
        return initializer(shape, dtype=dtype) + keras.ops.convert_to_tensor(shift, dtype)

    return start
