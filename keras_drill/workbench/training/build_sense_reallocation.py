"""Builds the callback that moves senses between words during training."""

from pathlib import Path
from typing import Any

from keras_drill.callbacks import NonMonotonicAveraging, SenseReallocation
from keras_drill.senses.policies import (
    AllocationPolicy,
    IdleSensePolicy,
    RankingPolicy,
    ThresholdPolicy,
)
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.config.head_sections import SensesConfig


def build_sense_reallocation(
    config: RunConfig, logs: Path | None, averaging: NonMonotonicAveraging | None
) -> SenseReallocation | None:
    """Builds the callback that moves senses between words.

    Args:
        config: the options.
        logs: folder for TensorBoard curves; `None` writes no curves.
        averaging: the callback that averages weights; `None` if the run does not average.

    Returns:
        The callback, or `None` if the run's senses do not move.
    """
    options = config.senses
    if not (config.head.has_senses and options.dynamic):
        return None
    arguments: dict[str, Any] = {
        "interval": options.interval,
        "policy": build_policy(options),
        "momentum": options.momentum,
        "moved_embedding": options.moved_embedding,
        "seed": config.training.seed,
        "log_dir": logs,
    }
    if averaging is None:
        return SenseReallocation(**arguments)
    return ReallocationBeforeAveraging(averaging, **arguments)


def build_policy(options: SensesConfig) -> AllocationPolicy:
    """Builds the allocation policy that `senses.policy` names."""
    if options.policy == "threshold":
        return ThresholdPolicy(options.threshold)
    if options.policy == "ranking":
        return RankingPolicy(options.ratio)
    return IdleSensePolicy(options.idle_share)


class ReallocationBeforeAveraging(SenseReallocation):
    """Moves senses between words until the training begins to average its weights.

    If a sense moved later, its average would mix embeddings of different words.

    Args:
        averaging: the callback that averages the weights.
        **kwargs: arguments of `SenseReallocation`.
    """

    def __init__(self, averaging: NonMonotonicAveraging, **kwargs):
        super().__init__(**kwargs)
        self._averaging = averaging

    def on_train_batch_end(self, batch, logs=None):
        if not self._averaging.averaging:
            super().on_train_batch_end(batch, logs)
