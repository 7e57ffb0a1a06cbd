import keras
from keras import ops


class ResetState(keras.callbacks.Callback):
    """Zeroes the carried state of stateful backbones where a text begins.

    At the beginning of each epoch the state becomes zero. An evaluation begins with zero as well,
    and afterwards the state is what it was before, so that evaluating in the middle of training
    changes nothing.

    It finds the model's direct layers (a `LanguageModel`'s backbone, the layers of a `Sequential`)
    that have `reset_state` and `state_variables`, as the backbones and recurrent layers of this
    package do. Batches for evaluation must have the batch size of training.

    Example:

    >>> layer = keras_drill.layers.LSTM(7, return_sequences=True, stateful=True)
    >>> model = keras.Sequential([layer])
    >>> model.compile("sgd", "mse")
    >>> x = np.ones((2, 5, 7))
    >>> reset_state = keras_drill.callbacks.ResetState()
    >>> history = model.fit(x, x, batch_size=2, verbose=0, callbacks=[reset_state])
    """

    def on_epoch_begin(self, epoch, logs=None):
        self._reset()

    def on_test_begin(self, logs=None):
        self._saved = [ops.copy(v) for layer in self._layers() for v in layer.state_variables]
        self._reset()

    def on_test_end(self, logs=None):
        variables = [v for layer in self._layers() for v in layer.state_variables]
        if not self._saved:  # the evaluation itself built the model
            self._reset()
        for variable, value in zip(variables, self._saved, strict=False):
            variable.assign(value)
        self._saved = []

    def _layers(self):
        return [layer for layer in self.model.layers if hasattr(layer, "state_variables")]

    def _reset(self):
        for layer in self._layers():
            layer.reset_state()
