"""The numerical rank of a model's log-probabilities."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class RankEstimate:
    """Numerical rank of a matrix of log-probabilities of all words at some tokens of a text.

    Made by `keras_drill.analysis.measure_rank`.

    Args:
        rank: The numerical rank, see `keras_drill.analysis.numerical_rank`.
        bound: Rank that the output layer cannot exceed, whatever its weights; `None` when only
            the size of the matrix bounds it.
        tokens: Rows of the matrix.
        words: Columns of the matrix.
        tolerance: Singular values above this part of the greatest were counted.
        singular_values: The singular values, the greatest first.
    """

    rank: int
    bound: int | None
    tokens: int
    words: int
    tolerance: float
    singular_values: np.ndarray

    @property
    def is_full(self) -> bool:
        """Whether the matrix has the greatest rank that its size allows: more tokens may show a
        greater one."""
        return self.rank == min(self.tokens, self.words)
