"""From labels to words, where words have several labels."""

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
    """The logarithm of each word's sum over its labels' probabilities.

    Args:
        label_log_probs: `[N, M]`.
        columns: `[V, S]` integers, the labels of each word.
        mask: `[V, S]`, which of them there are.
        nothing: Finite where a word may have none: its sum's logarithm is about this.
        compiled: Makes an element-wise function one pass over memory, where that pays.

    Returns:
        `[N, V]`.
    """
    # A label's row is gathered as one piece. A compiler would fuse the transpositions with what
    # comes after, and compute logarithms entry by entry, at three times the time.
    rows = compiled(partial(_of_rows, nothing))(ops.transpose(label_log_probs), columns, mask)
    return ops.transpose(rows)


def log_sum_exp(terms: Sequence[Tensor]) -> Tensor:
    """Entry by entry, of tensors of one shape."""
    if len(terms) == 1:
        return terms[0]
    top = terms[0]
    for x in terms[1:]:
        top = ops.maximum(top, x)
    top = ops.where(ops.isfinite(top), top, ops.zeros_like(top))
    return top + ops.log(sum(ops.exp(x - top) for x in terms))


def _of_rows(nothing, label_log_probs, columns, mask):
    """`[V, N]` from `[M, N]`."""
    return log_sum_exp(
        [
            ops.where(mask[:, s : s + 1], ops.take(label_log_probs, columns[:, s], axis=0), nothing)
            for s in range(columns.shape[1])
        ]
    )
