import math

import keras
from keras import ops

from keras_drill.types import Tensor

DECAYS = ("constant", "inverse-sqrt", "cosine", "linear")


@keras.saving.register_keras_serializable(package="keras_drill")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that rises to a peak, and then stays constant or falls.

    Let n = step + 1 be the number of the training step, from 1, w = `warmup_steps`,
    D = `decay_steps`, f = `final_share` and t = min((n − w) / D, 1). The rate is
    `learning_rate` · n / w while n < w. Then the rate depends on `decay`:

        constant       learning_rate
        inverse-sqrt   learning_rate · √(max(w, 1) / n)
        cosine         learning_rate · (f + (1 − f) (1 + cos πt) / 2)
        linear         learning_rate · (f + (1 − f) (1 − t))

    The schedule of Vaswani et al. ("Noam"), d^-½ · min(n^-½, n w^-3/2) for a model of width d, is
    "inverse-sqrt" with `learning_rate` = (d w)^-½.

    Args:
        learning_rate: the rate at the peak.
        warmup_steps: number of steps in which the rate rises linearly.
        decay: "constant", "inverse-sqrt", "cosine" or "linear", see above.
        decay_steps: number of steps after the warm-up in which "cosine" and "linear" fall, at least
            1; ignored by the other decays.
        final_share: final rate of "cosine" and "linear", as a share of `learning_rate`, in [0, 1].

    Example:

    >>> schedule = keras_drill.optimizers.WarmupSchedule(
    ...     0.1, warmup_steps=2, decay="linear", decay_steps=4
    ... )
    >>> [round(float(schedule(step)), 3) for step in range(7)]
    [0.05, 0.1, 0.075, 0.05, 0.025, 0.0, 0.0]
    >>> optimizer = keras.optimizers.Adam(schedule)

    References:
        - [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 5.3
        - [Loshchilov and Hutter, 2017](https://arxiv.org/abs/1608.03983) (cosine)
    """

    def __init__(
        self,
        learning_rate: float,
        warmup_steps: int = 0,
        decay: str = "constant",
        decay_steps: int = 0,
        final_share: float = 0.0,
    ):
        super().__init__()
        if decay not in DECAYS:
            raise ValueError(f"`decay` must be one of {DECAYS}. Received: decay={decay!r}")
        if warmup_steps < 0:
            raise ValueError(
                f"`warmup_steps` must not be negative. Received: warmup_steps={warmup_steps}"
            )
        if decay in ("cosine", "linear") and decay_steps < 1:
            raise ValueError(
                f"`decay_steps` must be at least 1 with decay={decay!r}. "
                f"Received: decay_steps={decay_steps}"
            )
        if not 0 <= final_share <= 1:
            raise ValueError(
                f"`final_share` must be in [0, 1]. Received: final_share={final_share}"
            )
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.decay = decay
        self.decay_steps = decay_steps
        self.final_share = final_share

    def __call__(self, step: Tensor) -> Tensor:
        number = ops.cast(step, "float32") + 1.0
        share = self._share_after_warmup(number)
        if self.warmup_steps:
            share = ops.where(number < self.warmup_steps, number / self.warmup_steps, share)
        return self.learning_rate * share

    def _share_after_warmup(self, number):
        if self.decay == "constant":
            return ops.ones_like(number)
        if self.decay == "inverse-sqrt":
            return ops.sqrt(max(self.warmup_steps, 1) / number)
        t = ops.clip((number - self.warmup_steps) / self.decay_steps, 0.0, 1.0)
        left = (1.0 + ops.cos(math.pi * t)) / 2.0 if self.decay == "cosine" else 1.0 - t
        return self.final_share + (1.0 - self.final_share) * left

    def get_config(self) -> dict:
        return {
            "learning_rate": self.learning_rate,
            "warmup_steps": self.warmup_steps,
            "decay": self.decay,
            "decay_steps": self.decay_steps,
            "final_share": self.final_share,
        }
