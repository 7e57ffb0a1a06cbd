"""Vectors as points of a plane."""

import numpy as np


def project_to_plane(vectors: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """The two principal components of vectors.

    Args:
        vectors: `[n, d]`, at least 3 of them, of width at least 2.

    Returns:
        Points `[n, 2]` around 0, and the shares of the variance along each axis. The signs of the
        axes, which are arbitrary, are such that the largest coordinate is positive.

    Example:

    >>> points, shares = project_to_plane(np.array([[0, 0, 1], [4, 0, 1], [2, 1, 1], [2, -1, 1]]))
    >>> points[:, 0], shares
    (array([-2.,  2.,  0.,  0.]), (0.8, 0.2))
    """
    vectors = np.asarray(vectors, "float64")
    if vectors.ndim != 2 or min(vectors.shape[0], vectors.shape[1] + 1) < 3:
        raise ValueError(
            "`vectors` must be at least 3 vectors of width at least 2. "
            f"Received: shape {vectors.shape}"
        )
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    points = left[:, :2] * values[:2]
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    points = np.where(largest < 0, -points, points)
    variance = np.square(values)
    first, second = variance[:2] / max(variance.sum(), np.finfo("float64").tiny)
    return points, (float(first), float(second))
