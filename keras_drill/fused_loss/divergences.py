"""Divergences between a teacher's and a student's distribution over words, block by block.

Every divergence is a sum over words, which a tile accumulates over its blocks of labels. The
gradient with respect to the student's logits needs only these sums. Letters: p and q are the
teacher's and the student's probabilities `[T, B]` of a block, `log_p` and `log_q` their logarithms.
"""

import math
from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.label_shard import NEVER
from keras_drill.ops.graph import fold_columns
from keras_drill.ops.word_log_probs import log_sum_exp
from keras_drill.types import Tensor


class ForwardKL(NamedTuple):
    """Forward KL divergence of teacher p and student q, with the derivative `q - p`.

    KL(p || q) = sum p (log p - log q)
    """

    def sums(self, log_p: Tensor, log_q: Tensor) -> tuple:
        """Returns the sums over a block, a tuple of `[T]`, to accumulate over blocks."""
        return (_sum(ops.exp(log_p) * (log_p - log_q)),)

    def value(self, sums: tuple) -> Tensor:
        """Returns the divergence `[T]`, from the sums over all blocks."""
        return sums[0]

    def derivative(self, log_p: Tensor, log_q: Tensor, sums: tuple) -> Tensor:
        """Returns the gradient `[T, B]` with respect to the student's logits."""
        return ops.exp(log_q) - ops.exp(log_p)


class ReverseKL(NamedTuple):
    """Reverse KL divergence of teacher p and student q.

        KL(q || p) = sum q (log q - log p)

    The derivative is `q (log q - log p - KL)`.
    """

    def sums(self, log_p: Tensor, log_q: Tensor) -> tuple:
        return (_sum(ops.exp(log_q) * (log_q - log_p)),)

    def value(self, sums: tuple) -> Tensor:
        return sums[0]

    def derivative(self, log_p: Tensor, log_q: Tensor, sums: tuple) -> Tensor:
        return ops.exp(log_q) * (log_q - log_p - sums[0][:, None])


class JensenShannon(NamedTuple):
    """Generalised Jensen-Shannon divergence of teacher p and student q.

        beta KL(p || m) + (1 - beta) KL(q || m),    m = beta p + (1 - beta) q

    The derivative is `(1 - beta) q (log q - log m - KL(q || m))`. Both p and q appear in m, but the
    parts of the derivative through m cancel.
    """

    beta: float

    def sums(self, log_p: Tensor, log_q: Tensor) -> tuple:
        log_m = self._log_mixture(log_p, log_q)
        return _sum(ops.exp(log_q) * (log_q - log_m)), _sum(ops.exp(log_p) * (log_p - log_m))

    def value(self, sums: tuple) -> Tensor:
        return self.beta * sums[1] + (1 - self.beta) * sums[0]

    def derivative(self, log_p: Tensor, log_q: Tensor, sums: tuple) -> Tensor:
        log_m = self._log_mixture(log_p, log_q)
        return (1 - self.beta) * ops.exp(log_q) * (log_q - log_m - sums[0][:, None])

    def _log_mixture(self, log_p, log_q):
        return log_sum_exp([log_p + math.log(self.beta), log_q + math.log(1 - self.beta)])


class ForwardKLWithRest(NamedTuple):
    """Forward KL divergence from a teacher p of which only some words are stored.

        sum_stored p (log p - log q) + p_rest (log p_rest - log q_rest)

    All other words count as one event, with the teacher's probability p_rest and the student's
    q_rest. The derivative is `q - p` for a stored word, and `q - p_rest q / q_rest` for another.
    """

    def sums(self, log_p: Tensor, log_q: Tensor) -> tuple:
        p = ops.exp(log_p)
        rest = ops.where(log_p <= NEVER, ops.exp(log_q), ops.zeros_like(p))
        return _sum(p * (log_p - log_q)), _sum(p), _sum(rest)

    def value(self, sums: tuple) -> Tensor:
        known, p_rest, q_rest = sums[0], 1 - sums[1], sums[2]
        has_rest = ops.logical_and(p_rest > 0, q_rest > 0)
        ratio = ops.where(has_rest, p_rest / q_rest, ops.ones_like(p_rest))
        return known + ops.where(has_rest, p_rest * ops.log(ratio), ops.zeros_like(p_rest))

    def derivative(self, log_p: Tensor, log_q: Tensor, sums: tuple) -> Tensor:
        p_rest, q_rest = ops.maximum(1 - sums[1], 0.0), sums[2]
        ratio = ops.divide_no_nan(p_rest, q_rest)[:, None]
        factor = ops.where(log_p <= NEVER, 1 - ratio, ops.ones_like(ratio))
        return factor * ops.exp(log_q) - ops.exp(log_p)


def _sum(x):
    return ops.sum(fold_columns(ops.add, x), axis=-1)
