"""The rank of a model's log-probabilities over a text."""

from collections.abc import Iterator

import numpy as np
from keras import ops

from keras_drill.analysis.float64_head import float64_head
from keras_drill.analysis.numerical_rank import RELATIVE_TOLERANCE, numerical_rank
from keras_drill.analysis.rank_estimate import RankEstimate
from keras_drill.analysis.singular_values import singular_values
from keras_drill.compositions import Softmax
from keras_drill.output_layer import OutputLayer
from keras_drill.scores import InnerProduct

_BLOCK = 256  # tokens whose log-probabilities are in memory at a time


def measure_rank(
    head: OutputLayer,
    hidden: np.ndarray,
    tolerance: float = RELATIVE_TOLERANCE,
    seed: int = 0,
) -> RankEstimate:
    """Numerical rank of the matrix of log-probabilities `[N, V]` of an output layer.

    For a softmax of inner products that matrix is `A = H Wᵀ + 1 bᵀ - z 1ᵀ`, with `H [N, d]`,
    `W [V, d]`, biases `b` and log-normalisers `z`. Its rank is at most `d + 2`, whatever makes the
    labels `W`: that is the softmax bottleneck, which DRILL has too. The log of a sum of
    exponentials, which mixtures of softmaxes and several senses a word have in their numerator,
    is not bounded so; the KerBS kernel is not an inner product either.

    Log-probabilities are computed in float64, in which what should be 0 is about `1e-15` of the
    greatest singular value, and the values above `tolerance` times the greatest are counted. No
    more than 256 rows are in memory at a time; of more than `2 N` words, `2 N` random mixtures of
    columns are taken instead, which have the same rank (see `singular_values`).

    Args:
        head: A built `keras_drill.OutputLayer`.
        hidden: Hidden states `[N, d_h]`. The rank found is at most N.
        tolerance: Relative tolerance on singular values.
        seed: Seed of the random mixtures.

    Returns:
        A `RankEstimate`.

    Example:

    >>> head = keras_drill.OutputLayer(101)
    >>> hidden = keras.random.normal((53, 7), seed=3)
    >>> log_probs = head(hidden)
    >>> estimate = measure_rank(head, hidden)
    >>> estimate.rank, estimate.bound
    (8, 9)

    The bias is still 0 in all places; the `2` of `d + 2` are bias and normaliser.

    References:
        - [Yang et al., 2018](https://arxiv.org/abs/1711.03953), "Breaking the Softmax Bottleneck"
        - [Pappas and Henderson, 2019](https://arxiv.org/abs/1905.05513), section 5
    """
    hidden = np.asarray(hidden, "float64")
    if hidden.ndim != 2 or not len(hidden):
        raise ValueError(f"`hidden` must be a matrix. Received: shape {hidden.shape}")
    exact = float64_head(head)

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, len(hidden), _BLOCK):
            yield ops.convert_to_numpy(exact(hidden[start : start + _BLOCK]))

    values = singular_values(blocks(), max_columns=2 * len(hidden), seed=seed)
    return RankEstimate(
        rank=numerical_rank(values, tolerance),
        bound=_bound(exact),
        tokens=len(hidden),
        words=head.vocabulary_size,
        tolerance=tolerance,
        singular_values=values,
    )


def _bound(head: OutputLayer) -> int | None:
    if not (isinstance(head.composition, Softmax) and isinstance(head.score, InnerProduct)):
        return None
    if head.logit_soft_cap is not None:  # bends every score
        return None
    return head.encoded_labels().shape[-1] + 1 + int(head.use_bias)
