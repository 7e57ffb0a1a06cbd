from abc import ABC, abstractmethod

import numpy as np

from keras_drill.senses.policies.sense_statistics import SenseStatistics


class AllocationPolicy(ABC):
    """Base class for policies, which decide which senses move to which words.

    A sense is one of several output embeddings of a word. Pass a policy to the callback
    `keras_drill.SenseReallocation`, or to `keras_drill.SenseReallocator`. Subclasses implement
    `moves`.

    A policy must keep no state and draw no random numbers, so that all devices make the same moves
    from equal statistics. After the moves every word must have `min_senses` to `max_senses` senses
    (arguments of the output layer).
    """

    @abstractmethod
    def moves(self, statistics: SenseStatistics) -> tuple[np.ndarray, np.ndarray]:
        """Decides which senses move, from the statistics of an interval.

        Args:
            statistics: `SenseStatistics` of senses and words, which the method must not change.

        Returns:
            The senses that move and their new words, both NumPy arrays of integers `[K]` for K
            moves. Each sense occurs at most once. The attribute `history` of
            `keras_drill.SenseReallocation` lists the moves in this order.
        """

    def get_config(self) -> dict:
        """Returns the constructor arguments, a dictionary; `from_config` makes an equal policy."""
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "AllocationPolicy":
        return cls(**config)
