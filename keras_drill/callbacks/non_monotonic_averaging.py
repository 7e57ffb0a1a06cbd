import warnings

import keras
import numpy as np
from keras import ops


class NonMonotonicAveraging(keras.callbacks.Callback):
    """Averages the weights over training steps once validation has stopped improving (NT-ASGD).

    Training starts averaging at the first check k whose loss is worse than the best of the losses
    that are more than n checks old,

        v_k > min(v_0, ..., v_{k-n-1}),    n = `non_monotone_interval`,

    and from then on, with w_s the weights after step s and K the step of the switch,

        w̄ = 1/(s − K) Σ_{i=K+1..s} w_i.

    The optimizer never sees the average: steps are made from w. Evaluation inside `fit` is of w̄,
    and between the end of an epoch and the beginning of the next, and after training, the model
    holds w̄. So put this callback **before** `ModelCheckpoint`, `EarlyStopping` and the like, and
    what they save and judge is w̄.

    Works with any optimizer. It takes the memory of one copy of the trainable weights, from the
    switch on. With `steps_per_execution=m` the average is over every m-th step.

    Resume: `get_state()` is a flat dictionary of arrays (`np.savez(file, **state)`). Saved together
    with the model at the end of an epoch and given to `set_state` before the next `fit`, training
    goes on as if it had not been interrupted.

    Args:
        monitor: the logged value to judge; smaller is better.
        non_monotone_interval: n.

    Example:

    >>> callback = NonMonotonicAveraging(non_monotone_interval=1)
    >>> [callback.check(loss) for loss in (5.0, 4.0, 4.5, 4.1)]
    [False, False, False, True]

    References:
        - [Merity et al., 2018](https://arxiv.org/abs/1708.02182), algorithm 1
        - [Polyak and Juditsky, 1992](https://doi.org/10.1137/0330046)
    """

    def __init__(self, monitor: str = "val_loss", non_monotone_interval: int = 5):
        super().__init__()
        if non_monotone_interval < 0:
            raise ValueError(
                "`non_monotone_interval` must not be negative. "
                f"Received: non_monotone_interval={non_monotone_interval}"
            )
        self.monitor = monitor
        self.non_monotone_interval = non_monotone_interval
        self.losses: list[float] = []
        self.averaging = False
        self.num_averaged = 0
        self.average_in_model = False
        # Σ w_i; while the average is in the model, w itself.
        self._sums: list[keras.Variable] = []

    def check(self, loss: float) -> bool:
        """Takes the next validation loss; returns whether weights are averaged from now on."""
        n = self.non_monotone_interval
        older = self.losses[:-n] if n else self.losses
        if not self.averaging and older and loss > min(older):
            self.averaging = True
        self.losses.append(float(loss))
        return self.averaging

    def on_epoch_begin(self, epoch, logs=None):
        self._take_average_out()

    def on_train_batch_end(self, batch, logs=None):
        if not self.averaging:
            return
        variables = self.model.trainable_variables
        if not self._sums:
            self._sums = [
                keras.Variable(
                    ops.zeros(v.shape, "float64" if v.dtype == "float64" else "float32"),
                    trainable=False,
                )
                for v in variables
            ]
        for total, variable in zip(self._sums, variables, strict=True):
            total.assign_add(ops.cast(variable, total.dtype))
        self.num_averaged += 1

    def on_test_begin(self, logs=None):
        self._put_average_in()

    def on_test_end(self, logs=None):
        self._take_average_out()

    def on_epoch_end(self, epoch, logs=None):
        if self.monitor in (logs or {}):
            self.check(logs[self.monitor])
        else:
            warnings.warn(
                f"NonMonotonicAveraging cannot judge epoch {epoch}: `monitor={self.monitor!r}` "
                f"is not logged. Received: {sorted(logs or {})}",
                stacklevel=2,
            )
        self._put_average_in()

    def on_train_end(self, logs=None):
        self._put_average_in()

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything but the model's weights that a resume needs, as arrays."""
        state = {
            "losses": np.array(self.losses),
            "averaging": np.array(self.averaging),
            "num_averaged": np.array(self.num_averaged),
            "average_in_model": np.array(self.average_in_model),
        }
        sums = {f"sum_{i}": ops.convert_to_numpy(total) for i, total in enumerate(self._sums)}
        return {**state, **sums}

    def set_state(self, state):
        """Takes what `get_state` gave; `state` may be the file that `np.load` opened."""
        self.losses = state["losses"].tolist()
        self.averaging = bool(state["averaging"])
        self.num_averaged = int(state["num_averaged"])
        self.average_in_model = bool(state["average_in_model"])
        num_sums = sum(name.startswith("sum_") for name in state)
        self._sums = [keras.Variable(state[f"sum_{i}"], trainable=False) for i in range(num_sums)]

    def _put_average_in(self):
        if self.num_averaged == 0 or self.average_in_model:
            return
        # One variable at a time, so that no second copy of the model exists.
        for total, variable in zip(self._sums, self.model.trainable_variables, strict=True):
            weights = ops.cast(ops.copy(variable), total.dtype)
            variable.assign(ops.cast(total / self.num_averaged, variable.dtype))
            total.assign(weights)
        self.average_in_model = True

    def _take_average_out(self):
        if not self.average_in_model:
            return
        for total, variable in zip(self._sums, self.model.trainable_variables, strict=True):
            average = ops.cast(ops.copy(variable), total.dtype)
            variable.assign(ops.cast(total, variable.dtype))
            total.assign(average * self.num_averaged)
        self.average_in_model = False
