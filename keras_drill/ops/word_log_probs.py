"""Log-probabilities of words that have several labels (output embeddings)."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from keras import ops

from keras_drill.types import Tensor


def word_log_probs(
    label_log_probs: Tensor,
    columns: Tensor,
    mask: Tensor,
    nothing: float = -np.inf,
    compiled: Callable = lambda function: function,
) -> Tensor:
    """Returns the log-probability of each word: the logarithm of the sum over its labels.

    Args:
        label_log_probs: `[N, M]`, log-probabilities of the labels.
        columns: `[V, S]` integers, the labels of each word. Unused entries may have any value.
        mask: `[V, S]` booleans, False for unused entries of `columns`.
        nothing: Log-probability of masked entries. Use a finite number if a word may have no
            labels. The word's log-probability is then about this number.
        compiled: Decorator that compiles an element-wise function, such as
            `keras_drill.ops.graph.fuse`.

    Returns:
        `[N, V]`.
    """
    # Transposed, so that the row of a label is gathered as one piece. A compiler would fuse the
    # transpositions with the rest and compute logarithms entry by entry, in three times the time.
    rows = compiled(partial(_of_rows, nothing))(ops.transpose(label_log_probs), columns, mask)
    return ops.transpose(rows)


def log_sum_exp(terms: Sequence[Tensor]) -> Tensor:
    """Returns `log Σ_i exp(terms[i])` entry by entry, for tensors of one shape."""
    if len(terms) == 1:
        return terms[0]
    top = terms[0]
    for x in terms[1:]:
        top = ops.maximum(top, x)
    top = ops.where(ops.isfinite(top), top, ops.zeros_like(top))
    return top + ops.log(sum(ops.exp(x - top) for x in terms))


def _of_rows(nothing, label_log_probs, columns, mask):
    """Returns the words' log-probabilities `[V, N]`, from those of the labels `[M, N]`."""
    return log_sum_exp(
        [
            ops.where(mask[:, s : s + 1], ops.take(label_log_probs, columns[:, s], axis=0), nothing)
            for s in range(columns.shape[1])
        ]
    )
