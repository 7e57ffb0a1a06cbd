import math
import numbers
from typing import Any

import keras
import numpy as np

from keras_drill.senses.policies.allocation_policy import AllocationPolicy
from keras_drill.senses.policies.sense_statistics import SenseStatistics


@keras.saving.register_keras_serializable(package="keras_drill")
class ThresholdPolicy(AllocationPolicy):
    """Moves a sense to every word whose mean log-probability is below a threshold.

        word i is needy  <=>  word_log_prob_i < threshold

    word_log_prob_i is the running mean of the log-probability of word i at tokens whose target is
    i, see `SenseStatistics`. A sense is one of several output embeddings of a word.

    Needy words receive one sense each while there are senses to take, beginning with the lowest
    mean log-probability. The policy takes the least used senses of words that are not needy and
    have more than `min_senses` senses. A needy word that has `max_senses` senses receives no sense.
    Words that have not occurred are not needy. Ties are resolved in favour of the lower index.

    Args:
        threshold: Log-probability below which a word is needy (ε in the paper); at most 0.

    Raises:
        ValueError: `threshold` is above 0.

    Example:

    Word 1 has a low log-probability and receives sense 2, the less used sense of word 0:

    >>> policy = keras_drill.senses.policies.ThresholdPolicy(-5.0)
    >>> statistics = keras_drill.senses.policies.SenseStatistics(
    ...     sense_to_word=np.array([0, 1, 0]),
    ...     usage=np.array([0.3, 0.6, 0.1]),
    ...     word_log_prob=np.array([-1.0, -7.0]),
    ...     word_count=np.array([4, 6]),
    ...     prob_sum=np.array([1.5, 0.1]),
    ...     min_senses=1,
    ...     max_senses=2,
    ... )
    >>> policy.moves(statistics)
    (array([2]), array([1]))

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274), algorithm 1
    """

    threshold: float

    def __init__(self, threshold: float):
        if not isinstance(threshold, numbers.Real) or math.isnan(threshold) or threshold > 0:
            raise ValueError(
                "`threshold` must be a log-probability, at most 0. "
                f"Received: threshold={threshold!r}"
            )
        self.threshold = float(threshold)

    def moves(self, statistics: SenseStatistics) -> tuple[np.ndarray, np.ndarray]:
        owner, counts = statistics.sense_to_word, statistics.senses_per_word
        needy = statistics.word_log_prob < self.threshold  # [V]
        takers = np.flatnonzero(needy & (counts < statistics.max_senses))
        takers = takers[np.argsort(statistics.word_log_prob[takers], kind="stable")]

        # No word both receives and loses senses, so the number of senses that a word can spare does
        # not change: all except its `min_senses` most used senses.
        spare = counts - statistics.min_senses
        givable = (statistics.place_in_word < spare[owner]) & ~needy[owner]  # [M]
        senses = statistics.by_usage[givable[statistics.by_usage]]

        number = min(len(takers), len(senses))
        return senses[:number], takers[:number]

    def get_config(self) -> dict[str, Any]:
        return {"threshold": self.threshold}
