"""Log-probabilities of the targets of a dataset, token by token."""

from collections.abc import Iterable

import numpy as np


def collect_log_probs(model, dataset: Iterable) -> tuple[np.ndarray, np.ndarray]:
    """Log-probability that a `LanguageModel` gives to every target of a dataset.

    The `[tokens, vocabulary]` matrix is never made. A stateful backbone starts from a zero state,
    carries it from batch to batch, and gets back the state that it had before.

    Args:
        model: A `keras_drill.LanguageModel`.
        dataset: `tf.data.Dataset`, or anything that iterates over `(tokens, targets)` or
            `(tokens, targets, sample_weight)`, each `[B, T]`.

    Returns:
        `(targets, log_probs)`: int32 and float32 arrays `[N]`, batch after batch, row after row,
        without the tokens whose weight is 0.
    """
    raise NotImplementedError
