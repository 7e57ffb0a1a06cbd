"""Stops a training whose loss is no number any more."""

import math

import keras

from keras_drill.training.run_error import RunError
from keras_drill.training.training_state import TrainingState


class DivergenceGuard(keras.callbacks.Callback):
    """Raises `RunError` at the first batch whose loss is NaN or infinite.

    Must stand before `Checkpointing` in the list, so that no checkpoint is made of it.

    Args:
        state: how far the training has come.
    """

    def __init__(self, state: TrainingState):
        super().__init__()
        self.state = state

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(logs["loss"]):
            raise RunError(
                f"the loss became {logs['loss']} at step {self.state.step + 1} (epoch "
                f"{self.state.epoch + 1}, batch {batch + 1}); the checkpoints before it and the "
                "best model are kept. A smaller optimizer.learning_rate or optimizer.clip_norm "
                "in a new run may help"
            )
