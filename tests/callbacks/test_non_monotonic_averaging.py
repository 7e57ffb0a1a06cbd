import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.callbacks import NonMonotonicAveraging

BATCHES, SIZE, D = 5, 3, 7


class Iterates(keras.callbacks.Callback):
    """The weights after every batch, during every evaluation and at the end of every epoch."""

    def __init__(self):
        super().__init__()
        self.batches, self.tests, self.epochs = [], [], []

    def _weights(self):
        return [ops.convert_to_numpy(v) for v in self.model.trainable_variables]

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(self._weights())

    def on_test_batch_end(self, batch, logs=None):
        self.tests.append(self._weights())

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(self._weights())


def make_model(optimizer):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((D,)), keras.layers.Dense(11), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


def fit(model, callback, epochs, initial_epoch=0):
    rng = np.random.RandomState(0)
    x, y = rng.randn(BATCHES * SIZE, D), rng.randn(BATCHES * SIZE, 1)
    iterates = Iterates()
    model.fit(
        x, y, SIZE, epochs=epochs, initial_epoch=initial_epoch, shuffle=False, verbose=0,
        validation_data=(x[:SIZE], y[:SIZE]), callbacks=[callback, iterates],
    )  # fmt: skip
    return iterates


def test_weights_are_averaged_from_the_first_step():
    callback = NonMonotonicAveraging(average_from_start=True)
    model = make_model("sgd")
    iterates = fit(model, callback, epochs=2)
    assert callback.num_averaged == len(iterates.batches) == 2 * BATCHES
    means = [np.mean(weights, axis=0) for weights in zip(*iterates.batches, strict=True)]
    for found, expected in zip(model.trainable_variables, means, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=1e-5, atol=1e-6)


class SwitchAfter(NonMonotonicAveraging):
    """Starts averaging at the end of a given epoch, whatever the losses."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def check(self, loss):
        super().check(loss)
        self.averaging = len(self.losses) > self.epoch
        return self.averaging


def assert_equal(found, expected, rtol=1e-5):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-7)


@pytest.mark.parametrize(
    "losses, n, switches_at",
    [
        ([5, 4, 3, 2, 1], 0, None),
        ([5, 4, 4.5], 0, 2),
        ([5, 4, 4.5, 4.4, 4.3], 2, 4),  # 4.3 > min(5, 4)
        ([5, 4, 4.5, 3.9, 4.3], 2, 4),
        ([5, 4, 4.5, 3.9, 3.95, 3.99], 2, None),
        ([5, 4, 4.5, 3.9, 3.95, 3.99, 3.91], 2, 6),
        ([5, 6, 7, 8], 5, None),
    ],
)
def test_trigger(losses, n, switches_at):
    callback = NonMonotonicAveraging(non_monotone_interval=n)
    switched = [callback.check(loss) for loss in losses]
    assert switched == [switches_at is not None and i >= switches_at for i in range(len(losses))]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_average_is_evaluated_and_left_but_steps_are_made_from_the_weights(optimizer):
    plain = fit(make_model(optimizer), keras.callbacks.Callback(), epochs=4)
    callback = SwitchAfter(1)
    model = make_model(optimizer)
    found = fit(model, callback, epochs=4)
    for a, b in zip(found.batches, plain.batches, strict=True):
        assert_equal(a, b)  # the same steps as without averaging
    for epoch in range(4):
        last = (epoch + 1) * BATCHES
        averaged = (
            plain.batches[2 * BATCHES : last] if epoch >= 2 else plain.batches[last - 1 : last]
        )
        expected = [np.mean(column, axis=0) for column in zip(*averaged, strict=True)]
        assert_equal(found.tests[epoch], expected)
        assert_equal(found.epochs[epoch], expected)
    assert_equal([ops.convert_to_numpy(v) for v in model.trainable_variables], found.epochs[-1])


@pytest.mark.slow
@pytest.mark.parametrize("saved_after", [1, 3])
def test_resume_is_exact(saved_after, tmp_path):
    expected = make_model("adam")
    fit(expected, SwitchAfter(1), epochs=5)

    first = SwitchAfter(1)
    model = make_model("adam")
    fit(model, first, epochs=saved_after)
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "averaging.npz", **first.get_state())

    resumed = keras.models.load_model(tmp_path / "model.keras")
    second = SwitchAfter(1)
    second.set_state(np.load(tmp_path / "averaging.npz"))
    fit(resumed, second, epochs=5, initial_epoch=saved_after)
    for a, b in zip(resumed.variables, expected.variables, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture
def one_weight():
    """A callback and the weight that it averages, without a training."""
    callback = NonMonotonicAveraging()
    callback.averaging = True
    callback.set_model(keras.Sequential([keras.layers.Dense(1, use_bias=False)]))
    callback.model.build((None, 2))
    return callback, callback.model.trainable_variables[0]


@pytest.mark.parametrize("constant", [True, False])
def test_the_average_stays_exact_after_very_many_steps(one_weight, constant):
    callback, weight = one_weight
    values = np.random.default_rng(0).normal(0.1, 0.0 if constant else 0.01, (50, 2, 1))
    values = values.astype("float32")
    weight.assign(values[0])
    callback.on_train_batch_end(0)
    callback.num_averaged = 2_000_001  # as if so many steps had had this weight
    total = 2_000_001 * values[0].astype("float64")
    for step, value in enumerate(values):
        weight.assign(value)
        callback.on_train_batch_end(step)
        total += value
        if step % 10 == 0:  # evaluated in between, which loses nothing
            callback.on_test_begin()
            callback.on_test_end()
    mean, rest = (
        ops.convert_to_numpy(v[0]).astype("float64") for v in (callback._means, callback._rests)
    )
    expected = total / 2_000_051
    np.testing.assert_allclose(mean + rest, expected, rtol=1e-10)
    if not constant:  # less than a float32 tells apart
        assert (abs(expected - values[0]) < 1e-6).all()
        assert (abs(mean + rest - values[0]) > 0).all()
    np.testing.assert_array_equal(ops.convert_to_numpy(weight), values[-1])


def test_the_average_is_in_the_model_where_it_is_evaluated_and_between_epochs(one_weight):
    callback, weight = one_weight

    def value():
        return ops.convert_to_numpy(weight).ravel().tolist()

    def step(value):
        weight.assign(np.full((2, 1), value))
        callback.on_train_batch_end(0)

    callback.on_test_begin()  # nothing is averaged yet
    callback.on_test_end()
    assert not callback.average_in_model
    step(1.0)
    step(4.0)
    callback.on_test_begin()
    assert value() == [2.5, 2.5]
    callback.on_test_begin()  # again, which changes nothing
    assert value() == [2.5, 2.5]
    callback.on_test_end()
    assert value() == [4.0, 4.0]
    callback.on_epoch_end(0, {"val_loss": 7.0})
    assert value() == [2.5, 2.5] and callback.losses == [7.0]
    saved = callback.get_state()

    again = NonMonotonicAveraging(non_monotone_interval=3)
    again.set_model(callback.model)
    again.set_state(saved)
    assert again.losses == [7.0] and again.averaging and again.average_in_model
    callback = again
    callback.on_epoch_begin(1)
    assert value() == [4.0, 4.0]
    step(7.0)
    callback.on_train_end()
    assert value() == [4.0, 4.0] and callback.num_averaged == 3
    callback.on_train_end()
    assert value() == [4.0, 4.0]


def test_after_the_last_step_of_a_loop_of_ones_own_the_average_is_in_the_model(one_weight):
    callback, weight = one_weight
    for value in (1.0, 4.0):
        weight.assign(np.full((2, 1), value))
        callback.on_train_batch_end(0)
    callback.on_train_end()
    np.testing.assert_array_equal(ops.convert_to_numpy(weight), np.full((2, 1), 2.5))


@pytest.mark.parametrize(
    ("dtype", "expected"), [("float64", "float64"), ("float32", "float32"), ("bfloat16", "float32")]
)
def test_means_have_at_least_32_bits_and_as_many_as_the_weights(dtype, expected):
    if keras.backend.backend() == "jax" and dtype == "float64":
        pytest.skip("JAX has 32 bits unless it is told otherwise")
    callback = NonMonotonicAveraging()
    callback.averaging = True
    callback.set_model(keras.Sequential([keras.layers.Dense(1, use_bias=False, dtype=dtype)]))
    callback.model.build((None, 2))
    callback.on_train_batch_end(0)
    found = {v.dtype for v in (*callback._means, *callback._rests)}
    assert found == {expected}


@pytest.mark.parametrize("in_model", [True, False])
def test_state_of_version_0_1_is_taken(one_weight, in_model):
    callback, weight = one_weight
    own, average = np.full((2, 1), 5.0, "float32"), np.full((2, 1), 3.0, "float32")
    weight.assign(average if in_model else own)
    state = {
        "losses": np.array([2.0]),
        "averaging": np.array(True),
        "num_averaged": np.array(4),
        "average_in_model": np.array(in_model),
        "sum_0": own if in_model else 4 * average,
    }
    callback.set_state(state)
    callback.on_epoch_begin(1)
    np.testing.assert_array_equal(ops.convert_to_numpy(weight), own)
    callback.on_train_batch_end(0)  # the fifth step, of weight 5
    callback.on_test_begin()
    np.testing.assert_allclose(ops.convert_to_numpy(weight), (4 * average + own) / 5, rtol=1e-6)


def test_nothing_to_evaluate_by_is_said():
    callback = NonMonotonicAveraging(monitor="val_perplexity")
    with pytest.warns(UserWarning, match="logs do not contain .*monitor='val_perp.*val_loss"):
        fit(make_model("sgd"), callback, epochs=1)


def test_bad_interval():
    with pytest.raises(
        ValueError, match=r"must not be negative. Received: non_monotone_interval=-1"
    ):
        NonMonotonicAveraging(non_monotone_interval=-1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_average_keeps_what_weights_of_half_precision_cannot_hold(dtype):
    layer = keras.layers.Dense(1, use_bias=False, dtype=dtype)
    callback = NonMonotonicAveraging()
    callback.averaging = True
    callback.set_model(keras.Sequential([keras.Input((2,), dtype=dtype), layer]))
    (weight,) = callback.model.trainable_variables
    values = np.random.default_rng(0).normal(1, 0.1, (7, 2, 1))
    total = 0
    for step, value in enumerate(values):
        weight.assign(ops.cast(value, dtype))
        total += ops.convert_to_numpy(ops.cast(weight, "float32")).astype("float64")
        callback.on_train_batch_end(step)
        callback.on_test_begin()
        callback.on_test_end()
    mean, rest = (
        ops.convert_to_numpy(v[0]).astype("float64") for v in (callback._means, callback._rests)
    )
    np.testing.assert_allclose(mean + rest, total / 7, rtol=1e-7)
