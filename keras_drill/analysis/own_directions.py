"""Where to look for a hidden state that chooses a word."""

import numpy as np


def own_directions(labels: np.ndarray) -> np.ndarray:
    """The direction in which each label is farthest out, measured by the labels' covariance.

    `C⁻¹ (w_i - mean)`: of all directions, the one with the greatest ratio of the label's distance
    from the mean to the spread of all labels.

    Args:
        labels: `[V, d]`.

    Returns:
        `[V, d]`, scaled to a greatest component of ±1; zeros for a label that is the mean.

    Example:

    >>> own_directions(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 9.0], [0.0, -9.0]])).tolist()
    [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    """
    centred = labels - labels.mean(axis=0)
    directions = centred @ np.linalg.pinv(centred.T @ centred / len(labels), hermitian=True)
    greatest = np.abs(directions).max(axis=1, keepdims=True)
    return np.divide(directions, greatest, out=np.zeros_like(directions), where=greatest > 0)
