"""Singular values of a matrix that is never held as a whole."""

import math
from collections.abc import Iterable

import numpy as np

_SLAB = 4096  # columns that are projected at a time


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
            waiting = [np.linalg.qr(np.concatenate(waiting), mode="r")]
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
