"""Estimates the number of senses of a word by the likelihood of held-out contexts.

A third of each word's contexts is held out. The estimate is the smallest number from 1 to
`MOST_SENSES` whose likelihood of these contexts is within one standard error of the best number's
likelihood. The standard error is that of the mean difference over contexts.
"""

from collections.abc import Callable

import keras
import numpy as np
from scipy.special import logsumexp

from keras_drill.workbench.sense_induction import find_clusters

MOST_SENSES = 4  # as many as KerBS gives a word; the nouns have two to five
HELD_OUT = 3  # one context of so many


def kept_out(words: np.ndarray) -> np.ndarray:
    """`[N]` booleans, a random third of each word's contexts."""
    place = np.empty(len(words), int)
    order = np.random.default_rng(0).permutation(len(words))
    order = order[np.argsort(words[order], kind="stable")]
    counts = np.bincount(words)
    place[order] = np.arange(len(words)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place % HELD_OUT == HELD_OUT - 1


def fewest(log_probs: np.ndarray) -> int:
    """The number of senses, of log-probabilities `[numbers, contexts]` by 1, 2, ... senses."""
    below_best = log_probs[log_probs.mean(axis=1).argmax()] - log_probs
    error = below_best.std(axis=1, ddof=1) / np.sqrt(log_probs.shape[1])
    return 1 + int(np.argmax(below_best.mean(axis=1) <= error))


def count_by_mixture(contexts: np.ndarray, seed: int) -> int:
    """Senses of a word by a mixture of round normal distributions at k-means' clusters.

    Args:
        contexts: `[n, d]`, of one word.
        seed: Of the clusters.
    """
    out = kept_out(np.zeros(len(contexts), int))
    seen, new = contexts[~out].astype("float64"), contexts[out].astype("float64")
    log_probs = []
    for number in range(1, MOST_SENSES + 1):
        clusters = find_clusters(seen, number, seed)
        counts = np.bincount(clusters, minlength=number)
        means = np.stack([seen[clusters == c].mean(axis=0) for c in np.flatnonzero(counts)])
        variance = np.square(seen - means[clusters]).mean()
        squares = np.square(new[:, None] - means).sum(axis=-1)  # [n, k]
        shares = np.log(counts[counts > 0] / len(seen))
        log_prob = logsumexp(shares - squares / (2 * variance), axis=1)
        log_probs.append(log_prob - new.shape[1] / 2 * np.log(variance))
    return fewest(np.stack(log_probs))


def count_by_head(
    train: Callable[[list[int], np.ndarray], keras.Model],
    contexts: np.ndarray,
    words: np.ndarray,
    studied: int,
) -> list[int]:
    """Senses of the first `studied` words by how well a KerBS head tells each from all others.

    Args:
        train: From senses `[V]` and which contexts to learn from `[N]` to a trained model.
        contexts: `[N, d]`.
        words: `[N]`, the word of each.
        studied: How many words may have several.
    """
    out = kept_out(words)
    size = words.max() + 1
    log_probs = []
    for number in range(1, MOST_SENSES + 1):
        model = train([number] * studied + [1] * (size - studied), ~out)
        log_probs.append(keras.ops.convert_to_numpy(model.head.log_prob(contexts[out], words[out])))
    by_number = np.stack(log_probs)
    return [fewest(by_number[:, words[out] == word]) for word in range(studied)]
