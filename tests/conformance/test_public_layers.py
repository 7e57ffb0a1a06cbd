import inspect

import keras
import numpy as np
import pytest

from tests.conformance.public_layers import LAYERS, example_input

every_layer = pytest.mark.parametrize("name", LAYERS)


def make(name, **options):
    return LAYERS[name].make(**options), example_input(LAYERS[name].kind)


@every_layer
def test_config_makes_an_equal_layer(name):
    layer, _ = make(name)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


@every_layer
def test_one_attribute_per_argument(name):
    layer, _ = make(name)
    for parameter in inspect.signature(type(layer).__init__).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name == "self":
            continue
        parts = ("label_encoder", "composition", "allocation")  # of ready-made output layers
        owners = [layer, *(getattr(layer, part, None) for part in parts)]
        assert any(hasattr(owner, parameter.name) for owner in owners), parameter.name


@every_layer
def test_saved_in_a_model_it_gives_the_same(name, tmp_path):
    layer, x = make(name)
    inputs = keras.Input(x.shape[1:], dtype=str(x.dtype))
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(loaded(x)), np.asarray(model(x)))


@every_layer
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_keeps_float32_weights_and_finite_outputs(name, policy):
    layer, x = make(name, dtype=policy)
    outputs = layer(x)
    assert np.isfinite(np.asarray(keras.ops.cast(outputs, "float32"))).all()
    for variable in layer.trainable_variables:
        assert variable.dtype == "float32", variable.path


@every_layer
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_it_gives_the_same(name, jit_compile):
    import tensorflow as tf

    layer, x = make(name)
    expected = np.asarray(layer(x))
    actual = tf.function(layer, jit_compile=jit_compile, autograph=False)(tf.constant(x))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
