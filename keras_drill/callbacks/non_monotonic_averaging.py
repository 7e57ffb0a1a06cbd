import warnings
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.ops.variables import variable_like


class NonMonotonicAveraging(keras.callbacks.Callback):
    """Averages the weights over training steps once validation has stopped improving (NT-ASGD).

    The callback checks the validation loss at the end of every epoch. Let v_k be the loss at check
    k = 0, 1, .... Averaging starts at the first check whose loss is worse than the best of the
    losses that are more than n checks old:

        v_k > min(v_0, ..., v_{k-n-1}),    n = `non_monotone_interval`.

    Let w_s be the weights after step s, and K the step after which averaging starts. The average is

        w̄ = 1/(s − K) Σ_{i=K+1..s} w_i.

    The optimizer always updates w. The model contains w̄ instead of w during evaluation inside
    `fit`, from the end of an epoch to the beginning of the next, and after training. Put this
    callback **before** callbacks such as `ModelCheckpoint` and `EarlyStopping`, so that they save
    and compare w̄. An `EarlyStopping` with a patience of less than n + 2 checks may end the training
    before averaging begins.

    The callback works with any optimizer. Averaging needs memory for two copies of the trainable
    weights: w̄ is stored as the sum of two float32 numbers. In a single float32 number, changes of
    the average after about a million steps would be lost by rounding. With `steps_per_execution=m`,
    only the weights after every m-th step are averaged.

    To resume training, save `get_state()` with the model at the end of an epoch. The state is a
    flat dictionary of arrays (`np.savez(file, **state)`). Pass the state to `set_state` before the
    next `fit`. Training then continues as if it had not been interrupted.

    Args:
        monitor: Name of the logged value that is checked as the loss v_k. Lower values must be
            better. An epoch without this value in its logs is skipped, with a warning.
        non_monotone_interval: Number n of checks: the losses of the n checks just before check k
            are ignored, see above.
        average_from_start: Whether to average from the first step on, whatever the losses are. Use
            this for the fine-tuning stage of AWD-LSTM, which starts from trained weights.

    Example:

    >>> from keras_drill.callbacks import NonMonotonicAveraging
    >>> callback = NonMonotonicAveraging(non_monotone_interval=1)
    >>> [callback.check(loss) for loss in (5.0, 4.0, 4.5, 4.1)]
    [False, False, False, True]

    References:
        - [Merity et al., 2018](https://arxiv.org/abs/1708.02182), algorithm 1
        - [Polyak and Juditsky, 1992](https://doi.org/10.1137/0330046)
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        non_monotone_interval: int = 5,
        average_from_start: bool = False,
    ):
        super().__init__()
        if non_monotone_interval < 0:
            raise ValueError(
                "`non_monotone_interval` must not be negative. "
                f"Received: non_monotone_interval={non_monotone_interval}"
            )
        self.monitor = monitor
        self.non_monotone_interval = non_monotone_interval
        self.losses: list[float] = []
        self.averaging = average_from_start
        self.num_averaged = 0
        self.average_in_model = False
        # w̄ is the sum of the two. While the model holds w̄, `_means` holds w.
        self._means: list[keras.Variable] = []
        self._rests: list[keras.Variable] = []

    def check(self, loss: float) -> bool:
        """Records the next validation loss. Returns whether weights are averaged from now on.

        The callback calls this method at the end of every epoch.

        Args:
            loss: The validation loss v_k.
        """
        n = self.non_monotone_interval
        older = self.losses[:-n] if n else self.losses
        if not self.averaging and older and loss > min(older):
            self.averaging = True
        self.losses.append(float(loss))
        return self.averaging

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if self._means and keras.distribution.distribution() is not None:
            # `set_state` creates its variables without the model, so on one device.
            pairs = list(self._averaged())
            self._means = [_variable_for(v, ops.convert_to_numpy(mean)) for mean, _, v in pairs]
            self._rests = [_variable_for(v, ops.convert_to_numpy(rest)) for _, rest, v in pairs]

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._take_average_out()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if not self.averaging:
            return
        variables = self.model.trainable_variables
        if not self._means:
            self._means, self._rests = _zeros_like(variables), _zeros_like(variables)
        self.num_averaged += 1
        for mean, rest, variable in self._averaged():
            # mean += (w - mean) / n, with the rounding error of this sum stored in `rest`.
            before = ops.copy(mean)
            change = (ops.cast(variable, mean.dtype) - before - rest) / self.num_averaged + rest
            after = before + change
            added = after - before
            rest.assign((before - (after - added)) + (change - added))
            mean.assign(after)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._put_average_in()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        self._take_average_out()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        logs = logs or {}
        if self.monitor in logs:
            self.check(logs[self.monitor])
        else:
            warnings.warn(
                f"NonMonotonicAveraging ignores epoch {epoch}, because its logs do not contain "
                "`monitor`. Pass `validation_data` to `fit`, or set `monitor` to a logged value. "
                f"Received: monitor={self.monitor!r}, logs of {sorted(logs)}",
                stacklevel=2,
            )
        self._put_average_in()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._put_average_in()

    def get_state(self) -> dict[str, np.ndarray]:
        """Returns the arrays that the callback needs to resume training, see the class.

        The arrays belong to the model's weights at the same moment, so save both together.
        """
        state = {
            "losses": np.array(self.losses),
            "averaging": np.array(self.averaging),
            "num_averaged": np.array(self.num_averaged),
            "average_in_model": np.array(self.average_in_model),
        }
        means = {f"mean_{i}": ops.convert_to_numpy(mean) for i, mean in enumerate(self._means)}
        rests = {f"rest_{i}": ops.convert_to_numpy(rest) for i, rest in enumerate(self._rests)}
        return {**state, **means, **rests}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restores the output of `get_state`, which may be a file opened by `np.load`."""
        self.losses = state["losses"].tolist()
        self.averaging = bool(state["averaging"])
        self.num_averaged = int(state["num_averaged"])
        self.average_in_model = bool(state["average_in_model"])
        number = sum(name.startswith(("mean_", "sum_")) for name in state)
        if "sum_0" in state:  # of version 0.1, which stored Σ w_i
            divisor = 1 if self.average_in_model else max(self.num_averaged, 1)
            means = [state[f"sum_{i}"] / divisor for i in range(number)]
            rests = [np.zeros_like(mean) for mean in means]
        else:
            means = [state[f"mean_{i}"] for i in range(number)]
            rests = [state[f"rest_{i}"] for i in range(number)]
        self._means = [keras.Variable(mean, trainable=False) for mean in means]
        self._rests = [keras.Variable(rest, trainable=False) for rest in rests]

    def _put_average_in(self):
        if self.num_averaged == 0 or self.average_in_model:
            return
        # One variable at a time, so that no further copy of the model exists.
        for mean, rest, variable in self._averaged():
            average = ops.copy(mean)
            mean.assign(ops.cast(variable, mean.dtype))
            variable.assign(ops.cast(average, variable.dtype))
            # Weights may have a lower precision than the mean.
            rest.assign_add(average - ops.cast(variable, mean.dtype))
        self.average_in_model = True

    def _take_average_out(self):
        if not self.average_in_model:
            return
        for mean, _, variable in self._averaged():
            average = ops.cast(ops.copy(variable), mean.dtype)
            variable.assign(ops.cast(mean, variable.dtype))
            mean.assign(average)
        self.average_in_model = False

    def _averaged(self):
        return zip(self._means, self._rests, self.model.trainable_variables, strict=True)


def _zeros_like(variables) -> list[keras.Variable]:
    return [
        _variable_for(v, ops.zeros(v.shape, "float64" if v.dtype == "float64" else "float32"))
        for v in variables
    ]


def _variable_for(variable, value) -> keras.Variable:
    return variable_like(variable, value, trainable=False)
