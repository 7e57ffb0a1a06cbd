"""The rank of a model's log-probabilities over a text."""

import dataclasses
import math
from collections.abc import Iterable, Iterator

import numpy as np
from keras import ops

from keras_drill.compositions import Softmax
from keras_drill.output_layer import OutputLayer
from keras_drill.scores import InnerProduct
from keras_drill.workbench.analysis.float64_head import float64_head

RELATIVE_TOLERANCE = 1e-12
_BLOCK = 256  # tokens whose log-probabilities are in memory at a time
_SLAB = 4096  # columns that are projected at a time


@dataclasses.dataclass(frozen=True)
class RankEstimate:
    """Numerical rank of a matrix of log-probabilities of all words at some tokens of a text.

    Made by `keras_drill.workbench.analysis.measure_rank`.

    Args:
        rank: The numerical rank, see `keras_drill.workbench.analysis.numerical_rank`.
        bound: Rank that the output layer cannot exceed, whatever its weights; `None` when only
            the size of the matrix bounds it.
        tokens: Rows of the matrix.
        words: Columns of the matrix.
        tolerance: Singular values above this part of the greatest were counted.
        singular_values: The singular values, the greatest first.
    """

    rank: int
    bound: int | None
    tokens: int
    words: int
    tolerance: float
    singular_values: np.ndarray

    @property
    def is_full(self) -> bool:
        """Whether the matrix has the greatest rank that its size allows: more tokens may show a
        greater one."""
        return self.rank == min(self.tokens, self.words)


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


def numerical_rank(values: np.ndarray, tolerance: float = RELATIVE_TOLERANCE) -> int:
    """Number of singular values above `tolerance` times the greatest.

    In float64, rounding leaves about `1e-15` of the greatest where the exact value is 0, so the
    default of `1e-12` tells apart what is computed from what is rounded.

    Args:
        values: Singular values, as `singular_values` gives them.
        tolerance: Relative tolerance.

    Example:

    >>> numerical_rank(np.array([5.0, 2.0, 1e-6, 1e-15]))
    3
    """
    values = np.asarray(values)
    if not 0 < tolerance < 1:
        raise ValueError(f"`tolerance` must be between 0 and 1. Received: tolerance={tolerance}")
    if values.ndim != 1 or not values.size:
        raise ValueError(f"`values` must be a non-empty vector. Received: shape {values.shape}")
    return int(np.count_nonzero(values > tolerance * values.max()))


def singular_values(
    blocks: Iterable[np.ndarray], max_columns: int | None = None, seed: int = 0
) -> np.ndarray:
    """Singular values of a tall matrix `[N, C]` that is given as blocks of rows, in float64.

    The blocks go one by one into the triangular factor `R [C, C]` of a QR decomposition, whose
    singular values are those of the matrix. Unlike with the smaller Gram matrix `AᵀA`, small
    values keep their digits: a Gram matrix loses all below `1e-8` of the greatest.

    A matrix of more than `max_columns` columns is first multiplied with a matrix of random signs
    `[C, max_columns] / sqrt(max_columns)`. That leaves the rank `r` as it is, up to `max_columns`,
    and changes singular values by a factor between about `1 - sqrt(r / max_columns)` and
    `1 + sqrt(r / max_columns)`.

    Memory: `O(max_columns²)` floats and one byte for each of the `C * max_columns` signs.

    Args:
        blocks: Arrays `[rows, C]`.
        max_columns: Most columns to compute with; `None` computes with all.
        seed: Seed of the random signs.

    Returns:
        `min(N, C)` values, or `min(N, max_columns)`, the greatest first.

    Example:

    >>> matrix = np.diag([3.0, 2.0, 0.0]).repeat(4, axis=0)
    >>> singular_values(matrix[row : row + 5] for row in range(0, 12, 5)).round(6)
    array([6., 4., 0.])

    References:
        - [Halko et al., 2011](https://arxiv.org/abs/0909.4061) (random projections)
    """
    if max_columns is not None and max_columns < 1:
        raise ValueError(f"`max_columns` must be at least 1. Received: max_columns={max_columns}")
    signs = None
    waiting: list[np.ndarray] = []  # rows that are not in the triangular factor yet
    for block in blocks:
        block = np.asarray(block, "float64")
        if block.ndim != 2:
            raise ValueError(f"`blocks` must be matrices. Received: shape {block.shape}")
        if not np.isfinite(block).all():
            raise ValueError("`blocks` must be finite. Received: NaN or infinity")
        if max_columns is not None and block.shape[1] > max_columns:
            if signs is None:
                signs = np.random.default_rng(seed).integers(
                    2, size=(block.shape[1], max_columns), dtype="int8"
                )
            block = _project(block, signs)
        waiting.append(block)
        columns = block.shape[1]
        if sum(map(len, waiting)) >= 2 * columns:
            factor = np.linalg.qr(np.concatenate(waiting), mode="r")
            waiting = [factor]  # type: ignore[list-item]  # NumPy's hint leaves modes out
    if not waiting:
        raise ValueError("`blocks` must hold at least one block. Received: none")
    return np.linalg.svd(np.concatenate(waiting), compute_uv=False)


def _project(block: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """`block @ (2 bits - 1) / sqrt(columns)`, in slabs."""
    projected = np.zeros((len(block), bits.shape[1]))
    for start in range(0, block.shape[1], _SLAB):
        slab = 2.0 * bits[start : start + _SLAB] - 1.0
        projected += block[:, start : start + _SLAB] @ slab
    return projected / math.sqrt(bits.shape[1])
