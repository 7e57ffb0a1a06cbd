"""Learning-rate schedules."""

from keras_drill.optimizers.sequence_length_schedule import SequenceLengthSchedule

__all__ = ["SequenceLengthSchedule"]
