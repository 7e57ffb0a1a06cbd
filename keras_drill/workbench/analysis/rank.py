"""Measures the numerical rank of a model's log-probabilities over a text."""

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
_BLOCK = 256  # rows of log-probabilities in memory at a time
_SLAB = 4096  # columns to project at a time


@dataclasses.dataclass(frozen=True)
class RankEstimate:
    """Result of `keras_drill.workbench.analysis.measure_rank`.

    The matrix contains the log-probabilities of all words (columns) at tokens of a text (rows).

    Args:
        rank: The numerical rank, see `keras_drill.workbench.analysis.numerical_rank`.
        bound: Upper bound of the rank for any weights of the output layer; `None` if only the size
            of the matrix bounds the rank.
        tokens: Number of rows of the matrix.
        words: Number of columns of the matrix.
        tolerance: Relative tolerance on singular values.
        singular_values: The singular values in descending order.
    """

    rank: int
    bound: int | None
    tokens: int
    words: int
    tolerance: float
    singular_values: np.ndarray

    @property
    def is_full(self) -> bool:
        """Whether the size of the matrix limits the rank, which more tokens may then increase."""
        return self.rank == min(self.tokens, self.words)


def measure_rank(
    head: OutputLayer,
    hidden: np.ndarray,
    tolerance: float = RELATIVE_TOLERANCE,
    seed: int = 0,
) -> RankEstimate:
    """Measures the numerical rank of an output layer's matrix of log-probabilities, `[N, V]`.

    For a softmax of inner products the matrix is `A = H Wᵀ + 1 bᵀ - z 1ᵀ`, with `H [N, d]`,
    `W [V, d]`, biases `b` and log-normalizers `z`. Its rank is at most `d + 2`, however the labels
    `W` are computed. This is the softmax bottleneck, which DRILL has too. Mixtures of softmaxes and
    several senses per word have a sum of exponentials in the numerator, so this bound does not
    hold. The bound does not hold for the KerBS kernel either, which is not an inner product.

    Log-probabilities are computed in float64. There, rounding turns a singular value of 0 into
    about `1e-15` of the largest one. The rank is the number of singular values above `tolerance`
    times the largest one. At most 256 rows are in memory at a time. Vocabularies of more than `2 N`
    words are projected to `2 N` random combinations of columns, which have the same rank (see
    `singular_values`).

    Args:
        head: A built `keras_drill.OutputLayer`.
        hidden: Hidden states `[N, d_h]`. The measured rank is at most N.
        tolerance: Relative tolerance on singular values.
        seed: Seed of the random combinations.

    Returns:
        A `RankEstimate`.

    Example:

    >>> head = keras_drill.OutputLayer(101)
    >>> hidden = keras.random.normal((53, 7), seed=3)
    >>> log_probs = head(hidden)
    >>> estimate = measure_rank(head, hidden)
    >>> estimate.rank, estimate.bound
    (8, 9)

    The rank is 8, not 9, because a new layer's biases are all 0. The `2` in `d + 2` stands for the
    bias and the normalizer.

    References:
        - [Yang et al., 2018](https://arxiv.org/abs/1711.03953), "Breaking the Softmax Bottleneck"
        - [Pappas and Henderson, 2019](https://arxiv.org/abs/1905.05513), section 5
    """
    hidden = np.asarray(hidden, "float64")
    if hidden.ndim != 2 or not len(hidden):
        raise ValueError(
            f"`hidden` must be a matrix with at least one row. Received: shape {hidden.shape}"
        )
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
    """Returns the upper bound of the rank; `None` for layers without softmax bottleneck."""
    if not (isinstance(head.composition, Softmax) and isinstance(head.score, InnerProduct)):
        return None
    if head.logit_soft_cap is not None:  # applies a nonlinear function to every logit
        return None
    return head.encoded_labels().shape[-1] + 1 + int(head.use_bias)


def numerical_rank(values: np.ndarray, tolerance: float = RELATIVE_TOLERANCE) -> int:
    """Counts the singular values above `tolerance` times the largest one.

    In float64, rounding turns a singular value of 0 into about `1e-15` of the largest one. The
    default of `1e-12` therefore ignores rounding errors.

    Args:
        values: Singular values, for example from `singular_values`.
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
    """Computes the singular values of a tall matrix `[N, C]`, given as blocks of rows, in float64.

    Each block updates the triangular factor `R [C, C]` of a QR decomposition, which has the same
    singular values as the matrix. The simpler Gram matrix `AᵀA` would lose all singular values
    below `1e-8` of the largest one.

    A matrix of more than `max_columns` columns is first multiplied with a matrix of random signs
    `[C, max_columns] / sqrt(max_columns)`. This keeps the rank `r` up to `max_columns`, and changes
    singular values by a factor between about `1 - sqrt(r / max_columns)` and
    `1 + sqrt(r / max_columns)`.

    Memory: `O(max_columns²)` floats and one byte for each of the `C * max_columns` signs.

    Args:
        blocks: Arrays `[rows, C]`.
        max_columns: Maximum number of columns to compute with; `None` uses all columns.
        seed: Seed of the random signs.

    Returns:
        `min(N, C, max_columns)` values in descending order.

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
            waiting = [factor]  # type: ignore[list-item]  # NumPy's hint ignores `mode`
    if not waiting:
        raise ValueError("`blocks` must have at least one block. Received: no blocks")
    return np.linalg.svd(np.concatenate(waiting), compute_uv=False)


def _project(block: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Computes `block @ (2 bits - 1) / sqrt(columns)` in slabs of columns, to save memory."""
    projected = np.zeros((len(block), bits.shape[1]))
    for start in range(0, block.shape[1], _SLAB):
        slab = 2.0 * bits[start : start + _SLAB] - 1.0
        projected += block[:, start : start + _SLAB] @ slab
    return projected / math.sqrt(bits.shape[1])
