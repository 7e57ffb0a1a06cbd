import dataclasses
from functools import cached_property

import numpy as np


@dataclasses.dataclass(frozen=True)
class SenseStatistics:
    """Statistics of senses and words for an `AllocationPolicy`, as NumPy arrays.

    `keras_drill.SenseReallocation` passes this object to the policy. A sense is one of several
    output embeddings of a word. There are M senses and V words. The present interval is the
    training steps since the last reallocation of senses. The attribute `senses_per_word` `[V]` is
    the number of senses of each word.

    Args:
        sense_to_word: `[M]` integers, the word of every sense.
        usage: `[M]`, running average of each sense's probability; see `usage_by` of
            `keras_drill.senses.SenseAllocation`.
        word_log_prob: `[V]`, running average of a word's log-probability at tokens whose target is
            the word; 0 for words that have not occurred.
        word_count: `[V]`, how often each word was the target in the present interval.
        prob_sum: `[V]`, sum of the word's probability over the tokens that `word_count` counts.
        min_senses: Fewest senses that a word may have.
        max_senses: Most senses that a word may have.

    Example:

    >>> statistics = keras_drill.senses.policies.SenseStatistics(
    ...     sense_to_word=np.array([0, 1, 0]),
    ...     usage=np.array([0.3, 0.6, 0.1]),
    ...     word_log_prob=np.array([-1.0, -7.0]),
    ...     word_count=np.array([4, 6]),
    ...     prob_sum=np.array([1.5, 0.1]),
    ...     min_senses=1,
    ...     max_senses=2,
    ... )
    >>> statistics.senses_per_word
    array([2, 1])
    """

    sense_to_word: np.ndarray
    usage: np.ndarray
    word_log_prob: np.ndarray
    word_count: np.ndarray
    prob_sum: np.ndarray
    min_senses: int
    max_senses: int

    @cached_property
    def senses_per_word(self) -> np.ndarray:
        """`[V]`, the number of senses of each word."""
        return np.bincount(self.sense_to_word, minlength=len(self.word_count))

    @cached_property
    def by_usage(self) -> np.ndarray:
        """`[M]`, senses by increasing usage; for ties, by index."""
        return np.argsort(self.usage, kind="stable")

    @cached_property
    def by_word(self) -> np.ndarray:
        """`[M]`, senses sorted by word, and for each word by increasing usage."""
        return self.by_usage[np.argsort(self.sense_to_word[self.by_usage], kind="stable")]

    @cached_property
    def place_in_word(self) -> np.ndarray:
        """`[M]`, how many senses of the same word come before each sense in `by_word`."""
        counts, owner = self.senses_per_word, self.sense_to_word[self.by_word]
        place = np.empty(len(owner), int)
        place[self.by_word] = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
        return place
