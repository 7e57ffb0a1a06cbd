import contextlib
from typing import Any

import keras

from keras_drill.layers.carried_state import zero_carried_state, zero_state


class ResetState(keras.callbacks.Callback):
    """Sets the state of stateful layers to zero at the beginning of a text.

    A stateful layer carries its state from batch to batch, where each batch continues the text of
    the previous one. The callback sets the state to zero at the beginning of each epoch and of each
    evaluation. At the end of an evaluation the callback restores the state, so an evaluation inside
    `fit` does not influence training.

    The callback finds every layer of the model that carries state, at any depth: layers of this
    package and Keras' recurrent layers with `stateful=True`. Under a `tf.distribute` strategy every
    replica has its own state. The state has one row for each row of a batch, so batches for
    evaluation must have the batch size of training.

    Example:

    >>> import keras, keras_drill
    >>> import numpy as np
    >>> layer = keras_drill.layers.LSTM(7, return_sequences=True, stateful=True)
    >>> model = keras.Sequential([layer])
    >>> model.compile("sgd", "mse")
    >>> x = np.ones((2, 5, 7))
    >>> reset_state = keras_drill.callbacks.ResetState()
    >>> history = model.fit(x, x, batch_size=2, verbose=0, callbacks=[reset_state])
    """

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        zero_carried_state(self.model)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._evaluation = contextlib.ExitStack()
        self._evaluation.enter_context(zero_state(self.model))

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        self._evaluation.close()
