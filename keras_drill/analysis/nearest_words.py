"""Words that mean nearly the same as one sense of a word."""

import numpy as np


def nearest_words(
    labels: np.ndarray, sense_to_word: np.ndarray, sense: int, k: int
) -> list[tuple[int, float]]:
    """The words with a sense nearest to a given sense of another word, by cosine.

    Args:
        labels: Labels of all senses, `[M, d]`.
        sense_to_word: The word of every sense, `[M]`.
        sense: The sense.
        k: Most words to give.

    Returns:
        Words and cosines, the nearest first; fewer than `k` where there are no more words. A word
        counts with the nearest of its senses.

    Example:

    >>> labels = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 4.0], [0.0, -1.0]])
    >>> nearest_words(labels, np.array([0, 0, 1, 2]), sense=0, k=2)
    [(1, 0.6), (2, 0.0)]
    """
    labels, sense_to_word = np.asarray(labels, "float64"), np.asarray(sense_to_word)
    if labels.ndim != 2 or sense_to_word.shape != labels.shape[:1]:
        raise ValueError(
            "`sense_to_word` must have one word for each label. "
            f"Received: labels {labels.shape}, sense_to_word {sense_to_word.shape}"
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
