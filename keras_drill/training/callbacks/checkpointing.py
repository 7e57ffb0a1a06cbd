"""Checkpoints in the middle of an epoch."""

import time
from collections.abc import Callable

import keras

from keras_drill.training.stop_signal import StopSignal
from keras_drill.training.training_state import TrainingState


class Checkpointing(keras.callbacks.Callback):
    """Counts batches in the state of the training, and saves it every so many of them.

    Must be last in the list: what the other callbacks do at the end of a batch is in the
    checkpoint. The last batch of an epoch is left to the end of the epoch.

    Args:
        state: how far the training has come.
        every: batches between checkpoints; 0 for none.
        save: saves a checkpoint.
        stop_signal: asked after each batch whether to save and stop.
    """

    def __init__(
        self,
        state: TrainingState,
        every: int,
        save: Callable[[], None],
        stop_signal: StopSignal,
    ):
        super().__init__()
        self.state = state
        self.every = every
        self.save = save
        self.stop_signal = stop_signal
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
        if self.stop_signal.received:
            self.save()
            self.stop_signal.raise_interrupted()
        elif self.every and state.step % self.every == 0:
            self.save()
