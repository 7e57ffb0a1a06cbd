import numbers
from typing import Any

import keras
import numpy as np

from keras_drill.senses.policies.allocation_policy import AllocationPolicy
from keras_drill.senses.policies.sense_statistics import SenseStatistics

_TINY = 1e-7


@keras.saving.register_keras_serializable(package="keras_drill")
class RankingPolicy(AllocationPolicy):
    """Moves senses to frequent words in the order of a rank, as in the code of Miao et al.

        rank_w = (count_w + 1e-7) / (prob_sum_w + 1e-7) / (√count_w + 1e-7)

    `count_w` and `prob_sum_w` are the entries of `word_count` and `prob_sum` for word w, see
    `SenseStatistics`. A sense is one of several output embeddings of a word.

    The policy handles words by increasing rank, and senses by increasing usage. It skips words that
    have `max_senses` senses, and words that are not frequent. A word is frequent if its count in
    the interval is greater than the (V // 2)-th largest count of all V words. Every word that is
    not skipped receives the next sense whose word has more than `min_senses` senses at that moment.
    Senses before that sense are not considered again. The number of moves is limited by `ratio`.
    Ties are resolved in favour of the lower index.

    Words that receive senses may also lose senses. A word may even receive its own sense, which is
    then reset and counts as a move.

    Args:
        ratio: The number of moves is at most this share of the number of words, rounded up.

    Raises:
        ValueError: `ratio` is not in (0, 1].

    Example:

    >>> policy = keras_drill.senses.policies.RankingPolicy(ratio=0.25)
    >>> statistics = keras_drill.senses.policies.SenseStatistics(
    ...     sense_to_word=np.array([0, 1, 2, 3, 0]),
    ...     usage=np.array([0.3, 0.4, 0.05, 0.15, 0.1]),
    ...     word_log_prob=np.array([-1.0, -7.0, -2.0, -3.0]),
    ...     word_count=np.array([4, 60, 5, 9]),
    ...     prob_sum=np.array([1.5, 9.0, 0.1, 0.6]),
    ...     min_senses=1,
    ...     max_senses=2,
    ... )
    >>> policy.moves(statistics)
    (array([4]), array([1]))

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274)
        - [The authors' code](https://github.com/NingMiao/KerBS)
    """

    ratio: float

    def __init__(self, ratio: float = 0.005):
        if not isinstance(ratio, numbers.Real) or not 0 < ratio <= 1:
            raise ValueError(f"`ratio` must be in (0, 1]. Received: ratio={ratio!r}")
        self.ratio = float(ratio)

    def moves(self, statistics: SenseStatistics) -> tuple[np.ndarray, np.ndarray]:
        owner, counts = statistics.sense_to_word, statistics.senses_per_word
        most = len(counts) * self.ratio
        takers = self._takers(statistics)
        may_take = np.zeros(len(counts), bool)
        may_take[takers] = True

        senses = statistics.by_usage
        # The number of senses of a word that receives no sense never grows.
        senses = senses[((counts > statistics.min_senses) | may_take)[owner[senses]]]
        # Lists, because single elements of NumPy arrays are slow.
        owners, counts = owner[senses].tolist(), counts.tolist()
        moved: list[int] = []
        words: list[int] = []
        place = 0
        for word in takers.tolist():
            if counts[word] >= statistics.max_senses:
                continue
            while place < len(owners) and counts[owners[place]] <= statistics.min_senses:
                place += 1
            if len(moved) >= most or place == len(owners):
                break
            counts[owners[place]] -= 1
            counts[word] += 1
            moved.append(place)
            words.append(word)
            place += 1
        return senses[np.array(moved, int)], np.array(words, int)

    def _takers(self, statistics):
        """Returns the words of the frequent half, by increasing rank."""
        count = statistics.word_count.astype("float64")
        ratio = (count + _TINY) / (statistics.prob_sum.astype("float64") + _TINY)
        by_rank = np.argsort(ratio / (np.sqrt(count) + _TINY), kind="stable")
        half = max(1, len(count) // 2)
        return by_rank[(count > np.sort(count)[len(count) - half])[by_rank]]

    def get_config(self) -> dict[str, Any]:
        return {"ratio": self.ratio}
