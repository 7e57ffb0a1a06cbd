"""What the senses page says about one word."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class StudiedWord:
    """A word with its senses, in the text that was read. Shape letters: S senses, n occurrences.

    Args:
        word: The word.
        shares: Mean probability of every sense where the word occurs, `[S]`.
        theta: Kernel parameter of every sense, `[S]`; `None` without a kernel.
        nearest: Other words near to each sense, the nearest first.
        contexts: For each sense, `(text before, text after, probability of the sense)`.
        points: Context vectors of the occurrences in a plane, `[n, 2]`.
        variance: Shares of the variance along the axes of the plane.
        sense: The most probable sense of every occurrence, `[n]`, counted from 0.
    """

    word: str
    shares: np.ndarray
    theta: np.ndarray | None
    nearest: tuple[tuple[str, ...], ...]
    contexts: tuple[tuple[tuple[str, str, float], ...], ...]
    points: np.ndarray
    variance: tuple[float, float]
    sense: np.ndarray

    @property
    def num_senses(self) -> int:
        """Number of senses."""
        return len(self.shares)

    @property
    def occurrences(self) -> int:
        """How often the word occurs."""
        return len(self.points)
