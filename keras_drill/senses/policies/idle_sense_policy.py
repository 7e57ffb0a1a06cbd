import numbers
from typing import Any

import keras
import numpy as np

from keras_drill.senses.policies.allocation_policy import AllocationPolicy
from keras_drill.senses.policies.sense_statistics import SenseStatistics


@keras.saving.register_keras_serializable(package="keras_drill")
class IdleSensePolicy(AllocationPolicy):
    """Moves senses that their words do not use to words that use all of theirs.

        share_m = usage_m / usage of all senses of m's word
        sense m is idle  <=>  share_m < idle_share
        need_i = count_i · (-running mean of log p(i)) · senses_i

    Words without an idle sense and with less than `max_senses` receive one idle sense each, the
    neediest word first and the least used sense first. A word keeps its `min_senses` most used
    senses. Words that did not occur in the interval receive none. Ties go to the lower index.

    The papers' policies depend on how well a word is predicted. That depends more on its frequency
    than on its number of senses. This policy depends on whether a word uses its last sense: of two
    senses for one cluster of contexts the better one soon takes all, so the share of the other
    tells that it is not needed. The number of senses in the need is the evidence so far: a word
    that uses three is likelier to have a fourth than a word that left its second idle. No threshold
    depends on the vocabulary or on the loss.

    A moved sense starts with the mean usage and needs time to be adopted before it counts as idle.
    Let `momentum` times `interval` of `keras_drill.SenseReallocator` be around a half, so that it
    has several intervals.

    Args:
        idle_share: Share of a word's usage below which a sense is idle; less than
            `1 / max_senses`, so that senses used alike are not idle.

    Raises:
        ValueError: `idle_share` is not in (0, 1/2).

    Example:

    Word 1 uses its only sense; word 0 leaves sense 2 idle:

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
