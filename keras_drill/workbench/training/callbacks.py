"""Callbacks of the training loop, and its handling of signals such as Ctrl-C."""

import dataclasses
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

import keras
import numpy as np

from keras_drill.workbench.tasks.errors import Diverged, Interrupted
from keras_drill.workbench.training.checkpoint_writer import CheckpointWriter
from keras_drill.workbench.training.checkpoints import TrainingState
from keras_drill.workbench.training.workers import Workers

_SECONDS_BETWEEN_LINES = 10


class EpochCallbackList(keras.callbacks.CallbackList):
    """Callback list that makes many calls of `fit` look like one to its callbacks.

    `fit` cannot begin in the middle of an epoch. A training that resumes there therefore calls
    `fit` once per epoch. The callbacks see a single training between `begin` and `end`. In a
    resumed epoch, batch numbers still count from the beginning of the epoch.

    Args:
        callbacks: the callbacks.
        model: the model that is trained.
        **params: `epochs`, `steps` and `verbose`, as in Keras.

    Attributes:
        first_batch: number of batches of the current epoch that an earlier process finished.
    """

    def __init__(self, callbacks: list[keras.callbacks.Callback], model: keras.Model, **params):
        super().__init__(callbacks, add_history=True, model=model, **params)
        self.first_batch = 0

    def begin(self) -> None:
        """Calls `on_train_begin` of the callbacks."""
        super().on_train_begin()

    def end(self) -> None:
        """Calls `on_train_end` of the callbacks."""
        super().on_train_end()

    def on_train_begin(self, logs=None):
        """Does nothing, because `begin` calls the callbacks once for all epochs."""

    def on_train_end(self, logs=None):
        """Does nothing, because `end` calls the callbacks once for all epochs."""

    def on_train_batch_begin(self, batch, logs=None):
        super().on_train_batch_begin(self.first_batch + batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(self.first_batch + batch, logs)


def diverged(what: str, state: TrainingState) -> Diverged:
    """Returns the error for a training with NaN or infinite values.

    Args:
        what: clause that names the value, such as "the loss became nan".
        state: progress of the training.
    """
    kept = "earlier checkpoints and the best model are kept"
    if not state.best_epoch:
        kept = "no epoch has ended, so there is no model yet"
    return Diverged(
        f"{what} at step {state.step} (epoch {state.epoch + 1}, batch {state.batch}); {kept}. "
        "Try a smaller optimizer.learning_rate or optimizer.clip_norm in a new run"
    )


class DivergenceGuard(keras.callbacks.Callback):
    """Raises `Diverged` at the first batch whose loss is NaN or infinite.

    Must stand before `Checkpointing` in the list of callbacks, so that this batch is not saved.

    Args:
        state: progress of the training.
    """

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(logs["loss"]):
            place = dataclasses.replace(self.state, step=self.state.step + 1, batch=batch + 1)
            raise diverged(f"the loss became {logs['loss']}", place)


class GradientNorm(keras.callbacks.Callback):
    """Adds the epoch's mean norm of the gradient to the logs, as `gradient_norm`.

    Attributes:
        mean: the metric that the optimizer updates in each step; see `record_gradient_norm`.
    """

    def __init__(self):
        super().__init__()
        self.mean = keras.metrics.Mean(name="gradient_norm")

    def on_epoch_end(self, epoch, logs=None):
        logs["gradient_norm"] = float(self.mean.result())
        self.mean.reset_state()

    def get_state(self) -> dict[str, np.ndarray]:
        """Returns the metric's variables, which hold the sums of the current epoch."""
        return {
            variable.name: keras.ops.convert_to_numpy(variable) for variable in self.mean.variables
        }

    def set_state(self, state):
        """Assigns the result of `get_state`."""
        for variable in self.mean.variables:
            variable.assign(state[variable.name])


class StopSignal:
    """Context manager that delays Ctrl-C, SIGTERM and SIGHUP to the end of a batch.

    The first signal only sets `received`, so no step is interrupted. The training loop calls `ask`
    after each batch. A second signal raises `Interrupted` at once. The training can then resume
    from its last checkpoint. SIGTERM and SIGHUP stay ignored if the process was started to ignore
    them, as `nohup` does with SIGHUP.

    Args:
        resume_command: the command that resumes the training, for the message.

    Attributes:
        received: number of the first signal; 0 before the first signal.
    """

    def __init__(self, resume_command: str):
        self.resume_command = resume_command
        self.received = 0
        self._previous: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> "StopSignal":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def ask(self, workers: Workers) -> int:
        """Returns the number of a signal that any worker has received, or 0.

        Must be called on all workers at once.
        """
        self.received = int(workers.gather([self.received]).max())
        return self.received

    def raise_interrupted(self) -> None:
        """Raises `Interrupted`. Call this method after a checkpoint is saved."""
        raise Interrupted(
            "training was interrupted, and a checkpoint was saved. To resume: "
            f"{self.resume_command}",
            self.received,
        )

    def _handle(self, number, frame) -> None:
        if self.received:
            raise Interrupted(
                "training was interrupted at once, without saving this step. To resume from the "
                f"last checkpoint: {self.resume_command}",
                number,
            )
        self.received = number
        if number == signal.SIGHUP:
            _restore_terminal()
        again = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        print(f"\nstopping after this step ({again} again stops at once)", file=sys.stderr)


def _restore_terminal() -> None:
    """Redirects standard output and standard error to /dev/null if their terminal was closed.

    Otherwise printing the next message would raise `OSError`.
    """
    with open(os.devnull, "w") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            try:  # `isatty` is False for a closed terminal
                stream.write("\n")
                stream.flush()
            except OSError:
                os.dup2(nowhere.fileno(), stream.fileno())


class Checkpointing(keras.callbacks.Callback):
    """Counts the batches in the training state, and saves checkpoints within epochs.

    Must be the last callback of the list, so that a checkpoint includes the changes by the other
    callbacks at the end of a batch. After the last batch of an epoch, the training loop saves the
    checkpoint instead.

    Args:
        state: progress of the training.
        every: number of batches between checkpoints; 0 saves one only after a signal.
        save: function that begins to save a checkpoint.
        writer: the object that writes the checkpoints.
        stop_signal: receiver of signals, which is checked after each batch.
        workers: the workers, which save and stop together.
    """

    def __init__(
        self,
        state: TrainingState,
        every: int,
        save: Callable[[], None],
        writer: CheckpointWriter,
        stop_signal: StopSignal,
        workers: Workers,
    ):
        super().__init__()
        self.state = state
        self.every = every
        self.save = save
        self.writer = writer
        self.stop_signal = stop_signal
        self.workers = workers
        self._seconds_before = 0.0
        self._start = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._seconds_before = self.state.epoch_seconds
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        state = self.state
        state.batch = batch + 1
        state.step += 1
        state.epoch_seconds = self._seconds_before + time.perf_counter() - self._start
        if state.batch == self.params["steps"]:
            return
        self.writer.poll()
        if self.stop_signal.ask(self.workers):
            self.save()
            self.workers.by_chief(self.writer.require)
            self.workers.wait_until_known()
            self.stop_signal.raise_interrupted()
        elif self.every and state.step % self.every == 0:
            self.save()


class ProgressLines(keras.callbacks.Callback):
    """Prints a line of progress every ten seconds and after each epoch.

    This callback is for output to files, where Keras' progress bar would print thousands of lines.
    """

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._printed = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if time.perf_counter() - self._printed >= _SECONDS_BETWEEN_LINES:
            self._printed = time.perf_counter()
            self._print(f"batch {batch + 1}/{self.params['steps']}", logs)

    def on_epoch_end(self, epoch, logs=None):
        self._print("done", logs)

    def _print(self, what: str, logs: dict[str, float]) -> None:
        values = "  ".join(f"{name} {value:.4g}" for name, value in logs.items())
        print(f"epoch {self._epoch + 1}/{self.params['epochs']}  {what}  {values}", flush=True)
