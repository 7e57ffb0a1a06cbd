"""Policies decide which senses move to which words."""

from keras_drill.senses.policies.allocation_policy import AllocationPolicy
from keras_drill.senses.policies.idle_sense_policy import IdleSensePolicy
from keras_drill.senses.policies.ranking_policy import RankingPolicy
from keras_drill.senses.policies.sense_statistics import SenseStatistics
from keras_drill.senses.policies.threshold_policy import ThresholdPolicy

__all__ = [
    "AllocationPolicy",
    "IdleSensePolicy",
    "RankingPolicy",
    "SenseStatistics",
    "ThresholdPolicy",
]
