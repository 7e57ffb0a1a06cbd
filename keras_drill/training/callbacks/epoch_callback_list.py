"""Callbacks of a training that calls `fit` once per epoch."""

import keras


class EpochCallbackList(keras.callbacks.CallbackList):
    """A callback list that makes many calls of `fit` look like one.

    `fit` cannot begin in the middle of an epoch, so a training that can be resumed there calls it
    once per epoch. Between `begin` and `end`, the callbacks in the list see one training, and
    batches are counted from the beginning of the epoch, also when it was resumed.

    Args:
        callbacks: the callbacks.
        model: the model that is trained.
        **params: `epochs`, `steps` and `verbose`, as in Keras.

    Attributes:
        first_batch: number of batches of the epoch that an earlier process has done.
    """

    def __init__(self, callbacks: list[keras.callbacks.Callback], model: keras.Model, **params):
        super().__init__(callbacks, add_history=True, model=model, **params)
        self.first_batch = 0

    def begin(self) -> None:
        """Tells the callbacks that the training begins."""
        super().on_train_begin()

    def end(self) -> None:
        """Tells the callbacks that the training ends."""
        super().on_train_end()

    def on_train_begin(self, logs=None):
        """Nothing: said once, by `begin`."""

    def on_train_end(self, logs=None):
        """Nothing: said once, by `end`."""

    def on_train_batch_begin(self, batch, logs=None):
        super().on_train_batch_begin(self.first_batch + batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(self.first_batch + batch, logs)
