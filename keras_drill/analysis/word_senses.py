"""The senses of a word in a text."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class WordSenses:
    """Which sense a word has where it occurs in a text.

    Made by `keras_drill.analysis.collect_word_senses`. Shape letters: S senses of the word, n
    occurrences.

    Args:
        word: Id of the word.
        senses: Its senses, `[S]`.
        places: Where the word occurs, `[n]`: places in the order in which the dataset gives the
            tokens, see `keras_drill.analysis.collect_hidden`.
        hidden: Context vectors that predict it, `[n, d_h]`.
        posteriors: Probability of each sense given the word and its context, `[n, S]`.
    """

    word: int
    senses: np.ndarray
    places: np.ndarray
    hidden: np.ndarray
    posteriors: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """Mean probability of every sense, `[S]`."""
        return self.posteriors.mean(axis=0)

    @property
    def most_probable(self) -> np.ndarray:
        """The most probable sense of every occurrence, `[n]`, as a place in `senses`."""
        return self.posteriors.argmax(axis=1)
