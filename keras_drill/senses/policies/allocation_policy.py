from abc import ABC, abstractmethod

import numpy as np

from keras_drill.senses.policies.sense_statistics import SenseStatistics


class AllocationPolicy(ABC):
    """Decides which senses move to which words.

    A policy is pure NumPy, keeps no state and draws no random numbers: equal statistics lead to
    equal moves. Afterwards every word must have `min_senses` to `max_senses` senses.
    """

    @abstractmethod
    def moves(self, statistics: SenseStatistics) -> tuple[np.ndarray, np.ndarray]:
        """Moves by the statistics of an interval.

        Args:
            statistics: Statistics of senses and words. Not changed.

        Returns:
            The senses that move and the words that they move to, both `[K]`, in the order of
            decision. A sense is in it once at most.
        """

    def get_config(self) -> dict:
        """Constructor arguments, so that `type(self)(**config)` makes an equal policy."""
        return {}

    @classmethod
    def from_config(cls, config: dict) -> "AllocationPolicy":
        return cls(**config)
