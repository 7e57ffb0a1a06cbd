"""Bins of whole numbers: where they begin and end, and what they are called."""

from collections.abc import Sequence

import numpy as np


def bin_ends(boundaries: Sequence[int]) -> list[tuple[int, int | None]]:
    """Lower end, included, and upper end, excluded, of the bins that boundaries make.

    Args:
        boundaries: Where bins begin, increasing, from 1 on. A bin from 0 goes before them; the last
            one has no end.

    Example:

    >>> bin_ends((1, 50))
    [(0, 1), (1, 50), (50, None)]
    """
    edges = np.asarray(boundaries)
    if edges.ndim != 1 or edges.size == 0 or edges[0] < 1 or np.any(np.diff(edges) <= 0):
        raise ValueError(
            f"`boundaries` must be increasing integers from 1 on. Received: {boundaries}"
        )
    starts = [int(edge) for edge in edges]
    return list(zip([0, *starts], [*starts, None], strict=True))


def bin_label(lower: int, upper: int | None) -> str:
    """The numbers in a bin, both ends included.

    >>> [bin_label(*ends) for ends in bin_ends((1, 50))]
    ['0', '1–49', '≥ 50']
    """
    if upper is None:
        return f"≥ {lower}"
    return f"{lower}" if upper == lower + 1 else f"{lower}–{upper - 1}"


def frequency_label(lower: int, upper: int | None) -> str:
    """The training counts in a bin, words that the training set does not have being `unseen`.

    >>> [frequency_label(*ends) for ends in bin_ends((1, 50))]
    ['unseen', '1–49', '≥ 50']
    """
    return "unseen" if upper == 1 else bin_label(lower, upper)
