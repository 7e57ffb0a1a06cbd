"""The callback of a run that moves senses from word to word."""

from keras_drill.callbacks import NonMonotonicAveraging, SenseReallocation
from keras_drill.senses.policies import (
    AllocationPolicy,
    IdleSensePolicy,
    RankingPolicy,
    ThresholdPolicy,
)
from keras_drill.training.callbacks.reallocation_before_averaging import ReallocationBeforeAveraging
from keras_drill.training.config import RunConfig
from keras_drill.training.config.senses_config import SensesConfig
from keras_drill.training.run_folder import RunFolder


def build_sense_reallocation(
    config: RunConfig, folder: RunFolder, averaging: NonMonotonicAveraging | None
) -> SenseReallocation | None:
    """Makes the callback; `None` where senses do not move.

    Args:
        config: the options.
        folder: the folder of the run.
        averaging: the callback that averages weights, if there is one.
    """
    options = config.senses
    if not (config.head.has_senses and options.dynamic):
        return None
    arguments = {
        "interval": options.interval,
        "policy": _build_policy(options),
        "momentum": options.momentum,
        "moved_embedding": options.moved_embedding,
        "seed": config.training.seed,
        "log_dir": folder.logs if config.training.tensorboard else None,
    }
    if averaging is None:
        return SenseReallocation(**arguments)
    return ReallocationBeforeAveraging(averaging, **arguments)


def _build_policy(options: SensesConfig) -> AllocationPolicy:
    if options.policy == "threshold":
        return ThresholdPolicy(options.threshold)
    if options.policy == "ranking":
        return RankingPolicy(options.ratio)
    return IdleSensePolicy(options.idle_share)
