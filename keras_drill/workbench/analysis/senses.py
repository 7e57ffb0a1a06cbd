"""Analyzes word senses: number of senses, occurrences in a text, and nearest words."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_drill.ready_made import KernelizedBayesianSoftmax
from keras_drill.workbench.analysis.collect import collect_hidden


def words_by_senses(sense_to_word: np.ndarray, vocabulary_size: int) -> dict[int, np.ndarray]:
    """Groups words by their number of senses, as in Table 6 of the KerBS paper.

    Args:
        sense_to_word: Id of the word of every sense, `[M]`.
        vocabulary_size: Number of words V.

    Returns:
        By number of senses, in ascending order, the ids of the words with this number of senses.

    Example:

    >>> words_by_senses(np.array([0, 1, 2, 2, 0, 2]), 3)
    {1: array([1]), 2: array([0]), 3: array([2])}

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274), Table 6
    """
    sense_to_word = np.asarray(sense_to_word)
    if sense_to_word.size and not 0 <= sense_to_word.min() <= sense_to_word.max() < vocabulary_size:
        raise ValueError(
            f"`sense_to_word` must be ids of words in [0, {vocabulary_size}). "
            f"Received: ids from {sense_to_word.min()} to {sense_to_word.max()}"
        )
    numbers = np.bincount(sense_to_word, minlength=vocabulary_size)
    return {int(number): np.flatnonzero(numbers == number) for number in np.unique(numbers)}


@dataclasses.dataclass(frozen=True)
class WordSenses:
    """Occurrences of a word in a text, with the probabilities of the word's senses.

    This is the result of `keras_drill.workbench.analysis.collect_word_senses`. In shapes, S is the
    number of senses and n the number of occurrences.

    Args:
        word: Id of the word.
        senses: Ids of the word's senses, `[S]`.
        places: Positions of the word in the order of the dataset's tokens, `[n]`, see
            `keras_drill.workbench.analysis.collect_hidden`.
        hidden: Hidden states that predict the word, `[n, d_h]`.
        posteriors: Probability of each sense given the word and its context, `[n, S]`.
    """

    word: int
    senses: np.ndarray
    places: np.ndarray
    hidden: np.ndarray
    posteriors: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """Mean probability of each sense over all occurrences, `[S]`."""
        return self.posteriors.mean(axis=0)

    @property
    def most_probable(self) -> np.ndarray:
        """Index in `senses` of the most probable sense of each occurrence, `[n]`."""
        return self.posteriors.argmax(axis=1)

    @property
    def information(self) -> float:
        """Mutual information of sense and context, in nats.

        This is the entropy of `shares` minus the mean entropy of `posteriors`. It is 0 if the
        posteriors are the same in every context. It is `log S` if each context has one certain
        sense and all senses are equally frequent.

        >>> none = np.empty(0)
        >>> certain, even = np.array([[1, 0], [0, 1]]), np.array([[0.5, 0.5], [0.5, 0.5]])
        >>> found = [WordSenses(3, none, none, none, each) for each in (certain, even)]
        >>> [round(each.information, 3) for each in found]
        [0.693, 0.0]
        """

        def entropy(probabilities: np.ndarray) -> np.ndarray:
            p = np.asarray(probabilities, "float64")
            return -(p * np.log(p, where=p > 0, out=np.zeros_like(p))).sum(axis=-1)

        return float(entropy(self.shares) - entropy(self.posteriors).mean())


def collect_word_senses(model: Any, dataset: Iterable, words: Sequence[int]) -> list[WordSenses]:
    """Collects hidden states and probabilities of senses for all occurrences of words.

    Args:
        model: A `keras_drill.LanguageModel` with a `KernelizedBayesianSoftmax`.
        dataset: Dataset of a text, see `keras_drill.workbench.analysis.collect_hidden`.
        words: Ids of the words.

    Returns:
        A `WordSenses` for each of `words`. Its arrays are empty if the word does not occur.
    """
    head = model.head
    if not isinstance(head, KernelizedBayesianSoftmax):
        raise ValueError(
            "`model` must have a head with several senses per word, a KernelizedBayesianSoftmax. "
            f"Received: a head of type {type(head).__name__}"
        )
    places, targets, hidden = collect_hidden(model, dataset, words=words)
    posteriors = ops.convert_to_numpy(head.sense_posteriors(hidden, targets))  # [N, S]
    table = ops.convert_to_numpy(head.allocation.senses_of_word)
    collected = []
    for word in words:
        senses = table[word][table[word] >= 0]
        here = targets == word
        collected.append(
            WordSenses(word, senses, places[here], hidden[here], posteriors[here][:, : len(senses)])
        )
    return collected


def nearest_words(
    labels: np.ndarray, sense_to_word: np.ndarray, sense: int, k: int
) -> list[tuple[int, float]]:
    """Finds the words nearest to a sense by cosine similarity, without the sense's own word.

    Args:
        labels: Labels of all senses, `[M, d]`.
        sense_to_word: Id of the word of every sense, `[M]`.
        sense: Id of the sense.
        k: Maximum number of words.

    Returns:
        Ids of words and cosines, the nearest word first. The cosine of a word with several senses
        is that of its nearest sense.

    Example:

    >>> labels = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 4.0], [0.0, -1.0]])
    >>> nearest_words(labels, np.array([0, 0, 1, 2]), sense=0, k=2)
    [(1, 0.6), (2, 0.0)]
    """
    labels, sense_to_word = np.asarray(labels, "float64"), np.asarray(sense_to_word)
    if labels.ndim != 2 or sense_to_word.shape != labels.shape[:1]:
        raise ValueError(
            "`sense_to_word` must have one word for each row of the matrix `labels`. Received: "
            f"labels of shape {labels.shape}, sense_to_word of shape {sense_to_word.shape}"
        )
    if not 0 <= sense < len(labels):
        raise ValueError(f"`sense` must be in [0, {len(labels)}). Received: sense={sense}")
    norms = np.linalg.norm(labels, axis=1)
    products = labels @ labels[sense]
    cosines = np.divide(
        products, norms * norms[sense], out=np.zeros_like(products), where=products != 0
    )
    cosines[sense_to_word == sense_to_word[sense]] = -np.inf
    best = np.full(sense_to_word.max() + 1, -np.inf)
    np.maximum.at(best, sense_to_word, cosines)
    order = np.argsort(-best, kind="stable")[:k]
    return [(int(word), float(best[word])) for word in order if np.isfinite(best[word])]


def example_contexts(
    ids: np.ndarray, positions: np.ndarray, probabilities: np.ndarray, k: int, width: int = 6
) -> list[tuple[int, float]]:
    """Finds the occurrences of a word at which a sense is most probable, in different contexts.

    Args:
        ids: Ids of the words of the text, `[N]`.
        positions: Positions of the word in the text, `[n]`.
        probabilities: Probability of the sense at these positions, `[n]`.
        k: Maximum number of occurrences.
        width: Number of words on either side in a context. Of equal contexts, only the one with the
            highest probability is used.

    Returns:
        Positions and probabilities, the highest probability first.

    Example:

    >>> ids = np.array([5, 1, 6, 5, 1, 6, 7, 1, 8])
    >>> example_contexts(ids, np.array([1, 4, 7]), np.array([0.9, 0.9, 0.8]), k=2, width=1)
    [(1, 0.9), (7, 0.8)]
    """
    ids, positions = np.asarray(ids), np.asarray(positions)
    probabilities = np.asarray(probabilities)
    if positions.shape != probabilities.shape:
        raise ValueError(
            "`probabilities` must have one value for each position. "
            f"Received: positions {positions.shape}, probabilities {probabilities.shape}"
        )
    chosen: list[tuple[int, float]] = []
    seen = set()
    for place in np.argsort(-probabilities, kind="stable"):
        if len(chosen) == k:
            break
        position = int(positions[place])
        start = max(position - width, 0)
        context = (position - start, ids[start : position + width + 1].tobytes())
        if context not in seen:
            seen.add(context)
            chosen.append((position, float(probabilities[place])))
    return chosen


def project_to_plane(vectors: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Projects vectors onto their first two principal components.

    Args:
        vectors: `[n, d]`, with n of at least 3 and d of at least 2.

    Returns:
        Points `[n, 2]` with mean 0, and the share of the variance along each axis. The arbitrary
        sign of an axis is chosen such that the coordinate with the largest absolute value is
        positive.

    Example:

    >>> points, shares = project_to_plane(np.array([[0, 0, 1], [4, 0, 1], [2, 1, 1], [2, -1, 1]]))
    >>> points[:, 0], shares
    (array([-2.,  2.,  0.,  0.]), (0.8, 0.2))
    """
    vectors = np.asarray(vectors, "float64")
    if vectors.ndim != 2 or min(vectors.shape[0], vectors.shape[1] + 1) < 3:
        raise ValueError(
            "`vectors` must be at least 3 vectors of width at least 2. "
            f"Received: shape {vectors.shape}"
        )
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    points = left[:, :2] * values[:2]
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    points = np.where(largest < 0, -points, points)
    variance = np.square(values)
    first, second = variance[:2] / max(variance.sum(), np.finfo("float64").tiny)
    return points, (float(first), float(second))
