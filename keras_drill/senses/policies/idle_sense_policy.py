import numbers
from typing import Any

import keras
import numpy as np

from keras_drill.senses.policies.allocation_policy import AllocationPolicy
from keras_drill.senses.policies.sense_statistics import SenseStatistics


@keras.saving.register_keras_serializable(package="keras_drill")
class IdleSensePolicy(AllocationPolicy):
    """Moves little-used (idle) senses to words that use all their senses.

        share_m = usage_m / usage of all senses of m's word
        sense m is idle  <=>  share_m < idle_share
        need_i = count_i · (-running mean of log p(i)) · senses_i

    Here m is a sense (one of several output embeddings of a word) and i a word. `usage_m` is a
    running average of the sense's probability, and log p(i) is the log-probability of word i at
    tokens whose target is i, see `SenseStatistics`. `count_i` is the number of these tokens since
    the last reallocation, and `senses_i` is the word's number of senses.

    Words without an idle sense and with fewer than `max_senses` senses receive one idle sense each.
    The word with the greatest need receives the least used idle sense, and so on. A word keeps its
    `min_senses` most used senses. Words that did not occur since the last reallocation receive no
    sense. Ties are resolved in favour of the lower index.

    The policies of [Miao et al., 2019](https://arxiv.org/abs/1911.00274) (`RankingPolicy` and
    `ThresholdPolicy`) depend on how well a word is predicted. But the quality of the prediction
    depends more on the word's frequency than on its number of senses. `IdleSensePolicy` depends on
    whether a word uses all its senses. If two senses represent one cluster of contexts, the better
    one soon gets all tokens. The low share of the other sense then shows that it is not needed. The
    need grows with the number of senses because a word that uses all of three senses is likely to
    need a fourth. Unlike the threshold of `ThresholdPolicy`, `idle_share` need not be adapted to
    the vocabulary or the loss.

    A moved sense starts with the mean usage of all senses, and needs several intervals before its
    usage is informative. Choose `momentum` (the weight of a step's new value in the running mean)
    and `interval` (in steps) of `keras_drill.SenseReallocator` such that `momentum * interval` is
    about 0.5, for example 0.005 and 100.

    Args:
        idle_share: Share of a word's usage below which a sense is idle. Choose less than
            `1 / max_senses`, so that no sense is idle if a word uses all senses equally.

    Raises:
        ValueError: `idle_share` is not in (0, 1/2).

    Example:

    Word 1 uses its only sense. Sense 2 of word 0 is idle:

    >>> policy = keras_drill.senses.policies.IdleSensePolicy()
    >>> statistics = keras_drill.senses.policies.SenseStatistics(
    ...     sense_to_word=np.array([0, 1, 0]),
    ...     usage=np.array([0.59, 0.4, 0.01]),
    ...     word_log_prob=np.array([-1.0, -2.0]),
    ...     word_count=np.array([6, 4]),
    ...     prob_sum=np.array([2.5, 0.6]),
    ...     min_senses=1,
    ...     max_senses=2,
    ... )
    >>> policy.moves(statistics)
    (array([2]), array([1]))
    """

    idle_share: float

    def __init__(self, idle_share: float = 0.1):
        if not isinstance(idle_share, numbers.Real) or not 0 < idle_share < 0.5:
            raise ValueError(
                f"`idle_share` must be in (0, 1/2). Received: idle_share={idle_share!r}"
            )
        self.idle_share = float(idle_share)

    def moves(self, statistics: SenseStatistics) -> tuple[np.ndarray, np.ndarray]:
        owner, counts = statistics.sense_to_word, statistics.senses_per_word
        usage = statistics.usage.astype("float64")
        of_word = np.bincount(owner, usage, len(counts))
        idle = usage < self.idle_share * of_word[owner]  # [M]
        has_idle = np.zeros(len(counts), bool)
        has_idle[owner[idle]] = True

        need = -statistics.word_count * statistics.word_log_prob.astype("float64") * counts
        takers = np.flatnonzero(~has_idle & (counts < statistics.max_senses) & (need > 0))
        takers = takers[np.argsort(-need[takers], kind="stable")]

        spare = counts - statistics.min_senses
        givable = idle & (statistics.place_in_word < spare[owner])  # [M]
        senses = statistics.by_usage[givable[statistics.by_usage]]

        number = min(len(takers), len(senses))
        return senses[:number], takers[:number]

    def get_config(self) -> dict[str, Any]:
        return {"idle_share": self.idle_share}
