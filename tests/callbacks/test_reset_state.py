import keras
import numpy as np
from keras import ops

from keras_drill.callbacks import ResetState
from keras_drill.layers import LSTM

B, T, D, H = 2, 5, 3, 7


class Watch(keras.callbacks.Callback):
    """Writes down the state at the places that matter."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def _note(self, place):
        self.seen.setdefault(place, []).append(
            [ops.convert_to_numpy(v) for v in self.model.layers[0].state_variables]
        )

    def on_epoch_begin(self, epoch, logs=None):
        self._note("epoch_begin")

    def on_train_batch_end(self, batch, logs=None):
        self._note("batch_end")

    def on_test_begin(self, logs=None):
        self._note("test_begin")

    def on_test_batch_end(self, batch, logs=None):
        self._note("test_batch_end")

    def on_epoch_end(self, epoch, logs=None):
        self._note("epoch_end")


def test_training_and_evaluation_begin_at_zero_and_evaluation_leaves_no_trace():
    model = keras.Sequential([LSTM(H, return_sequences=True, stateful=True)])
    model.build((B, None, D))
    model.compile("sgd", "mse")
    rng = np.random.RandomState(0)
    x, y = rng.randn(3 * B, T, D), rng.randn(3 * B, T, H)
    watch = Watch()
    model.fit(
        x, y, B, epochs=2, verbose=0, shuffle=False, validation_data=(x[:B], y[:B]),
        callbacks=[ResetState(), watch],
    )  # fmt: skip
    for place in ("epoch_begin", "test_begin"):
        assert len(watch.seen[place]) == 2
        assert all((state == 0).all() for states in watch.seen[place] for state in states)
    last_batches = watch.seen["batch_end"][2::3]
    for end, last, tested in zip(
        watch.seen["epoch_end"], last_batches, watch.seen["test_batch_end"], strict=True
    ):
        for a, b, c in zip(end, last, tested, strict=True):
            np.testing.assert_array_equal(a, b)
            assert (a != c).any()


def test_evaluation_alone_builds_the_model_and_leaves_zero():
    model = keras.Sequential([LSTM(H, return_sequences=True, stateful=True)])
    model.compile("sgd", "mse")
    x = np.ones((B, T, D))
    model.evaluate(x, np.ones((B, T, H)), B, verbose=0, callbacks=[ResetState()])
    assert all((ops.convert_to_numpy(v) == 0).all() for v in model.layers[0].state_variables)
