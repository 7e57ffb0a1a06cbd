"""From labels to words, where words have several labels."""

import numpy as np
from keras import ops

from keras_drill.types import Tensor


def word_log_probs(
    label_log_probs: Tensor, columns: Tensor, mask: Tensor, nothing: float = -np.inf
) -> Tensor:
    """The logarithm of each word's sum over its labels' probabilities.

    Args:
        label_log_probs: `[N, M]`.
        columns: `[V, S]` integers, the labels of each word.
        mask: `[V, S]`, which of them there are.
        nothing: Finite where a word may have none: its sum's logarithm is about this.

    Returns:
        `[N, V]`.
    """
    # A label's row is gathered as one piece, and sums over the first axis are vectors' sums:
    # along the last axis every entry would be by itself, at three times the time.
    places = ops.reshape(ops.transpose(columns), (-1,))
    labels = ops.take(ops.transpose(label_log_probs), places, axis=0)
    labels = ops.reshape(labels, (columns.shape[1], columns.shape[0], -1))  # [S, V, N]
    labels = ops.where(ops.transpose(mask)[..., None], labels, nothing)
    return ops.transpose(ops.logsumexp(labels, axis=0))
