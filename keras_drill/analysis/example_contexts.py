"""Where a sense shows most clearly."""

import numpy as np


def example_contexts(
    ids: np.ndarray, positions: np.ndarray, probabilities: np.ndarray, k: int, width: int = 6
) -> list[tuple[int, float]]:
    """The occurrences of a sense with the highest probability, each with different neighbours.

    Args:
        ids: The text, `[N]`.
        positions: Where the word occurs in it, `[n]`.
        probabilities: Of the sense there, `[n]`.
        k: Most occurrences to give.
        width: Words on either side that make a context; of equal contexts the first is given.

    Returns:
        Positions and probabilities, the highest first.

    Example:

    >>> ids = np.array([5, 1, 6, 5, 1, 6, 7, 1, 8])
    >>> example_contexts(ids, np.array([1, 4, 7]), np.array([0.9, 0.9, 0.8]), k=2, width=1)
    [(1, 0.9), (7, 0.8)]
    """
    ids, positions = np.asarray(ids), np.asarray(positions)
    probabilities = np.asarray(probabilities)
    if positions.shape != probabilities.shape:
        raise ValueError(
            "`probabilities` must have one value for each position. "
            f"Received: positions {positions.shape}, probabilities {probabilities.shape}"
        )
    chosen: list[tuple[int, float]] = []
    seen = set()
    for place in np.argsort(-probabilities, kind="stable"):
        if len(chosen) == k:
            break
        position = int(positions[place])
        start = max(position - width, 0)
        context = (position - start, ids[start : position + width + 1].tobytes())
        if context not in seen:
            seen.add(context)
            chosen.append((position, float(probabilities[place])))
    return chosen
