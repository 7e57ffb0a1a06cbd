"""What the analysis page says about one model."""

import dataclasses

import numpy as np

from keras_drill.analysis.argmaxable_words import ArgmaxableWords
from keras_drill.analysis.rank_estimate import RankEstimate


@dataclasses.dataclass(frozen=True)
class RunAnalysis:
    """The rank of a model's log-probabilities and the words that it can never choose.

    Args:
        name: Name of the run, unique on a page.
        output_layer: What the output layer is.
        perplexity: Perplexity of the text.
        rank: From `keras_drill.analysis.measure_rank`.
        argmaxable: From `keras_drill.analysis.measure_argmaxable_words`.
        words: The vocabulary, in the order of the ids.
        counts: How often each word occurs in the training text; `None` where unknown.
    """

    name: str
    output_layer: str
    perplexity: float
    rank: RankEstimate
    argmaxable: ArgmaxableWords
    words: tuple[str, ...]
    counts: tuple[int, ...] | None = None

    @property
    def never_chosen(self) -> list[str]:
        """The unargmaxable words, the most frequent first."""
        ids = np.flatnonzero(self.argmaxable.unargmaxable)
        if self.counts is not None:
            ids = ids[np.argsort(-np.array(self.counts)[ids], kind="stable")]
        return [self.words[id] for id in ids]

    @property
    def shown_rank(self) -> str:
        """The rank, as at least what the matrix could show."""
        return f"≥ {self.rank.rank:,}" if self.rank.is_full else f"{self.rank.rank:,}"

    @property
    def shown_bound(self) -> str:
        """The rank that the output layer cannot exceed."""
        return "none" if self.rank.bound is None else f"{self.rank.bound:,}"

    @property
    def shown_edge(self) -> tuple[str, str]:
        """The last singular value that counts and the first that does not, over the greatest."""
        values = self.rank.singular_values / self.rank.singular_values[0]
        return tuple(
            f"{values[place]:.0e}" if place < len(values) else "none"
            for place in (self.rank.rank - 1, self.rank.rank)
        )
