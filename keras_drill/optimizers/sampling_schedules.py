"""Schedules for the rate of scheduled sampling, as functions of the training step."""

import math

import keras
from keras import ops

from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class LinearSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Scheduled sampling rate that changes linearly to a final rate, and then stays constant.

        rate_i = initial_rate + (final_rate − initial_rate) · min(i / steps, 1)

    Here i is the training step, from 0. The rate is the probability with which training replaces
    an input word by a prediction of the model. Pass the schedule as `rate` to
    `keras_drill.ScheduledSampling`.

    Args:
        steps: Number of training steps until the final rate.
        final_rate: Last rate, in [0, 1].
        initial_rate: First rate, in [0, 1].

    Example:

    >>> schedule = keras_drill.optimizers.LinearSchedule(4, final_rate=0.5)
    >>> [float(schedule(step)) for step in (0, 1, 4, 9)]
    [0.0, 0.125, 0.5, 0.5]

    References:
        - [Bengio et al., 2015](https://arxiv.org/abs/1506.03099), section 2.4, where ε is 1 − rate
    """

    def __init__(self, steps: int, final_rate: float = 1.0, initial_rate: float = 0.0):
        super().__init__()
        if steps < 1:
            raise ValueError(f"`steps` must be at least 1. Received: steps={steps}")
        for name, rate in {"final_rate": final_rate, "initial_rate": initial_rate}.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"`{name}` must be in [0, 1]. Received: {name}={rate}")
        self.steps = steps
        self.final_rate = final_rate
        self.initial_rate = initial_rate

    def __call__(self, step: Tensor) -> Tensor:
        share = ops.minimum(ops.cast(step, "float32") / self.steps, 1.0)
        return self.initial_rate + (self.final_rate - self.initial_rate) * share

    def get_config(self) -> dict:
        return {
            "steps": self.steps,
            "final_rate": self.final_rate,
            "initial_rate": self.initial_rate,
        }


@keras.saving.register_keras_serializable(package="keras_drill")
class ExponentialSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Scheduled sampling rate that rises exponentially from 0 towards 1, fast at first.

        rate_i = 1 − k^i

    Here i is the training step, from 0. The rate is the probability with which training replaces
    an input word by a prediction of the model. Pass the schedule as `rate` to
    `keras_drill.ScheduledSampling`.

    Args:
        k: Number in (0, 1). A larger `k` makes the rise slower.

    Example:

    >>> schedule = keras_drill.optimizers.ExponentialSchedule(0.5)
    >>> [float(schedule(step)) for step in (0, 1, 3)]
    [0.0, 0.5, 0.875]

    References:
        - [Bengio et al., 2015](https://arxiv.org/abs/1506.03099), section 2.4, where ε is 1 − rate
    """

    def __init__(self, k: float):
        super().__init__()
        if not 0 < k < 1:
            raise ValueError(f"`k` must be in (0, 1). Received: k={k}")
        self.k = k

    def __call__(self, step: Tensor) -> Tensor:
        return -ops.expm1(ops.cast(step, "float32") * math.log(self.k))

    def get_config(self) -> dict:
        return {"k": self.k}


@keras.saving.register_keras_serializable(package="keras_drill")
class InverseSigmoidSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Scheduled sampling rate that rises from 1 / (k + 1) towards 1 along a sigmoid.

        rate_i = 1 − k / (k + exp(i / k))

    Here i is the training step, from 0. The rate rises fastest at step k ln k, where it is 1/2. The
    rate is the probability with which training replaces an input word by a prediction of the model.
    Pass the schedule as `rate` to `keras_drill.ScheduledSampling`.

    Args:
        k: Number, at least 1. A larger `k` makes the rise start later and take longer.

    Example:

    >>> schedule = keras_drill.optimizers.InverseSigmoidSchedule(100)
    >>> [round(float(schedule(step)), 2) for step in (0, 460, 2000)]
    [0.01, 0.5, 1.0]

    References:
        - [Bengio et al., 2015](https://arxiv.org/abs/1506.03099), section 2.4, where ε is 1 − rate
    """

    def __init__(self, k: float):
        super().__init__()
        if k < 1:
            raise ValueError(f"`k` must be at least 1. Received: k={k}")
        self.k = k

    def __call__(self, step: Tensor) -> Tensor:
        return ops.sigmoid(ops.cast(step, "float32") / self.k - math.log(self.k))

    def get_config(self) -> dict:
        return {"k": self.k}
