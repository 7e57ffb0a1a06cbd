from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class SequenceLengthSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate proportional to the length of the batch's sequences.

        rate(step) = learning_rate(step) · lengths[step mod len(lengths)] / sequence_length

    Use this schedule if the batches of a training run differ in sequence length, as for AWD-LSTM.
    The loss is a mean over tokens, so a short sequence would otherwise change the weights as much
    as a long sequence. The schedule scales the learning rate and not the loss, because clipping the
    norm of the gradients would undo a scaled loss.

    The schedule depends only on the number of the optimizer's steps. It is therefore correct with
    `steps_per_execution`, in compiled steps, and after training resumes.

    Args:
        learning_rate: float or `LearningRateSchedule`, the rate for sequences of
            `sequence_length`.
        lengths: integers, the sequence length of each training step in order, for example the
            concatenated results of `keras_drill.data.ContiguousBatches.lengths(epoch)` for all
            epochs. After the last length, the list repeats.
        sequence_length: the length of sequences that are trained with the full learning rate.

    Example:

    >>> schedule = keras_drill.optimizers.SequenceLengthSchedule(
    ...     30.0, lengths=[70, 35], sequence_length=70
    ... )
    >>> float(schedule(0)), float(schedule(1)), float(schedule(2))
    (30.0, 15.0, 30.0)
    >>> optimizer = keras.optimizers.SGD(schedule, global_clipnorm=0.25)

    References:
        - [Merity et al., 2018](https://arxiv.org/abs/1708.02182), section 4.1
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        lengths: Sequence[int] | np.ndarray,
        sequence_length: int,
    ):
        super().__init__()
        array = np.asarray(lengths)
        if array.ndim != 1 or array.size == 0 or array.min() < 1:
            raise ValueError(
                f"`lengths` must be a non-empty list of positive integers. Received: {array!r}"
            )
        if sequence_length < 1:
            raise ValueError(
                f"`sequence_length` must be at least 1. Received: sequence_length={sequence_length}"
            )
        self.learning_rate = learning_rate
        self.lengths = array.astype("int32")
        self.sequence_length = sequence_length

    def __call__(self, step: Tensor) -> Tensor:
        rate = self.learning_rate
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            rate = rate(step)
        index = ops.mod(ops.cast(step, "int32"), len(self.lengths))
        length = ops.take(ops.convert_to_tensor(self.lengths), index)
        return rate * ops.cast(length, "float32") / self.sequence_length

    def get_config(self) -> dict[str, Any]:
        rate = self.learning_rate
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            rate = keras.saving.serialize_keras_object(rate)
        return {
            "learning_rate": rate,
            "lengths": self.lengths.tolist(),
            "sequence_length": self.sequence_length,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SequenceLengthSchedule":
        config = dict(config)
        if isinstance(config["learning_rate"], dict):
            config["learning_rate"] = keras.saving.deserialize_keras_object(config["learning_rate"])
        return cls(**config)
