"""Clusters contexts by k-means. The clusters initialize the senses of a word."""

import numpy as np

_STARTS = 10
_ROUNDS = 100


def find_clusters(points: np.ndarray, number: int, seed: int = 0) -> np.ndarray:
    """Clusters points by k-means, with the best of ten k-means++ initializations.

    Args:
        points: `[N, d]`, with N of at least `number`.
        number: Number of clusters.
        seed: Seed of the initializations.

    Returns:
        Cluster of each point, `[N]` with values in [0, number). Cluster 0 is the largest.

    Raises:
        ValueError: There are fewer points than clusters.

    Example:

    >>> find_clusters(np.array([[0.0], [0.1], [5.0], [0.2], [5.1]]), 2)
    array([0, 0, 1, 0, 1])

    Reference: [Arthur & Vassilvitskii, 2007](https://dl.acm.org/doi/10.5555/1283383.1283494)
    """
    points = np.asarray(points, "float64")
    if not 1 <= number <= len(points):
        raise ValueError(
            f"`number` must be at least 1 and at most the number of points, {len(points)}. "
            f"Received: number={number}"
        )
    rng = np.random.default_rng(seed)
    _, best = min(
        (_lloyd(points, _plus_plus(points, number, rng)) for _ in range(_STARTS)),
        key=lambda result: result[0],
    )
    order = np.argsort(-np.bincount(best, minlength=number), kind="stable")
    return np.argsort(order)[best]


def _plus_plus(points: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Draws initial centres from the points.

    The probability of a point is proportional to its squared distance to the nearest centre drawn
    so far.

    Returns:
        The centres, `[number, d]`.
    """
    chosen = [int(rng.integers(len(points)))]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < number:
        nearest = np.minimum(nearest, np.square(points - points[chosen[-1]]).sum(axis=1))
        total = nearest.sum()
        chosen.append(int(rng.choice(len(points), p=nearest / total if total > 0 else None)))
    return points[chosen]


def _lloyd(points: np.ndarray, centres: np.ndarray) -> tuple[float, np.ndarray]:
    """Runs k-means from initial centres, which are changed in place.

    Returns:
        The sum of squared distances to the centres, and the cluster of each point.
    """
    squares = np.square(points).sum(axis=1)
    clusters = np.full(len(points), -1)
    for _ in range(_ROUNDS):
        distances = np.square(centres).sum(axis=1) - 2 * points @ centres.T  # [N, k]
        previous, clusters = clusters, distances.argmin(axis=1)
        if (clusters == previous).all():
            break
        counts = np.bincount(clusters, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, clusters, points)
        occupied = counts > 0  # an empty cluster stays where it was
        centres[occupied] = sums[occupied] / counts[occupied, None]
    return float((squares + distances.min(axis=1)).sum()), clusters
