"""Limits and labels of bins of whole numbers."""

from collections.abc import Sequence

import numpy as np


def bin_ends(boundaries: Sequence[int]) -> list[tuple[int, int | None]]:
    """Returns the limits of the bins between boundaries.

    Args:
        boundaries: Numbers at which bins begin, increasing, at least 1. A first bin begins at 0.
            The last bin has no end.

    Returns:
        The inclusive lower and the exclusive upper limit of each bin.

    Example:

    >>> bin_ends((1, 50))
    [(0, 1), (1, 50), (50, None)]
    """
    edges = np.asarray(boundaries)
    if edges.ndim != 1 or edges.size == 0 or edges[0] < 1 or np.any(np.diff(edges) <= 0):
        raise ValueError(
            "`boundaries` must be increasing integers of at least 1, in a non-empty sequence. "
            f"Received: boundaries={boundaries}"
        )
    starts = [int(edge) for edge in edges]
    return list(zip([0, *starts], [*starts, None], strict=True))


def bin_label(lower: int, upper: int | None) -> str:
    """Returns a label with the smallest and the largest number in a bin.

    >>> [bin_label(*ends) for ends in bin_ends((1, 50))]
    ['0', '1–49', '≥ 50']
    """
    if upper is None:
        return f"≥ {lower}"
    return f"{lower}" if upper == lower + 1 else f"{lower}–{upper - 1}"


def frequency_label(lower: int, upper: int | None) -> str:
    """Returns a label for a bin of training counts, `unseen` for words with a count of 0.

    >>> [frequency_label(*ends) for ends in bin_ends((1, 50))]
    ['unseen', '1–49', '≥ 50']
    """
    return "unseen" if upper == 1 else bin_label(lower, upper)
