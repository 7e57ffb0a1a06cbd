"""Schedules for learning rates and scheduled sampling, and functions that change optimizers."""

from keras_drill.optimizers.merge_repeated_rows import merge_repeated_rows
from keras_drill.optimizers.reset_optimizer_rows import reset_optimizer_rows
from keras_drill.optimizers.sampling_schedules import (
    ExponentialSchedule,
    InverseSigmoidSchedule,
    LinearSchedule,
)
from keras_drill.optimizers.sequence_length_schedule import SequenceLengthSchedule
from keras_drill.optimizers.warmup_schedule import WarmupSchedule

__all__ = [
    "ExponentialSchedule",
    "InverseSigmoidSchedule",
    "LinearSchedule",
    "SequenceLengthSchedule",
    "WarmupSchedule",
    "merge_repeated_rows",
    "reset_optimizer_rows",
]
