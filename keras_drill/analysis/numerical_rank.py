"""How many dimensions a matrix fills."""

import numpy as np

RELATIVE_TOLERANCE = 1e-12


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
