"""State that is kept while something else is read."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.layers import GRU
from keras_drill.layers.carried_state import carried_state, without_carried_state, zero_state
from keras_drill.models import AWDLSTM


def numpy(variables):
    return [ops.convert_to_numpy(variable) for variable in variables]


@pytest.fixture
def model():
    """Carries state in a layer of Keras', in one of this package, and in one inside a wrapper."""
    layers = [
        keras.layers.LSTM(3, return_sequences=True, stateful=True),
        GRU(5, return_sequences=True, stateful=True),
        keras.layers.Bidirectional(keras.layers.GRU(2, return_sequences=True, stateful=True)),
    ]
    model = keras.Sequential([keras.Input((None, 7), batch_size=2), *layers])
    model(np.ones((2, 3, 7)))
    return model


def test_all_state_is_found_once(model):
    shapes = [tuple(variable.shape) for variable in carried_state(model)]
    assert sorted(shapes) == [(2, 2), (2, 2), (2, 3), (2, 3), (2, 5)]
    backbone = AWDLSTM(11, 3, 5, 2, stateful=True, batch_size=2)
    assert carried_state(backbone) == []
    backbone.build((2, None))
    assert [id(v) for v in carried_state(backbone)] == [id(v) for v in backbone.state_variables]
    assert carried_state(keras.layers.LSTM(3)) == []


def test_state_begins_at_zero_and_comes_back(model):
    before, x = numpy(carried_state(model)), np.ones((2, 3, 7))
    with pytest.raises(KeyError), zero_state(model):
        assert not any(value.any() for value in numpy(carried_state(model)))
        model(x)
        assert all(value.any() for value in numpy(carried_state(model)))
        raise KeyError
    for a, b in zip(numpy(carried_state(model)), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_built_meanwhile_is_left_with_zeros():
    layer = GRU(5, stateful=True)
    with zero_state(layer):
        layer(np.ones((2, 3, 7)))
    assert not numpy(carried_state(layer))[0].any()


def test_without_state_any_batch_is_read_from_zero(model):
    x = np.random.default_rng(0).normal(size=(2, 3, 7))
    with zero_state(model):
        expected = ops.convert_to_numpy(model(x))
    before = numpy(carried_state(model))
    with without_carried_state(model):
        np.testing.assert_allclose(model(np.repeat(x, 2, axis=0)), expected.repeat(2, 0), atol=1e-6)
    for a, b in zip(numpy(carried_state(model)), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert model.layers[0].stateful


ON_TWO_REPLICAS = """
import numpy as np, keras, tensorflow as tf
from keras_drill.callbacks import ResetState
from keras_drill.layers import LSTM
from keras_drill.layers.carried_state import carried_state
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    layer = LSTM(3, return_sequences=True, stateful=True)
    model = keras.Sequential([keras.Input((None, 2), batch_size=2), layer])
    model.compile("sgd", "mse")
x = np.random.default_rng(0).normal(size=(4, 5, 2)).astype("float32")
y = np.zeros((4, 5, 3), "float32")
model.fit(x, y, batch_size=4, verbose=0)
def state():
    return [[part.numpy() for part in v.value.values] for v in carried_state(model)]
before = state()
assert all((a != b).any() for a, b in before)
first = model.evaluate(x, y, batch_size=4, verbose=0, callbacks=[ResetState()])
assert np.array_equal(before, state())
assert first == model.evaluate(x, y, batch_size=4, verbose=0, callbacks=[ResetState()])
"""


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.distribute")
def test_every_replica_gets_its_own_state_back():
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    subprocess.run([sys.executable, "-c", ON_TWO_REPLICAS], check=True, env=environment)
