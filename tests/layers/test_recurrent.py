"""The LSTM and the GRU against those of Keras, and what the layers add to them."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.layers import GRU, LSTM
from tests.layers.gradients import gradients

B, T, D, H = 3, 7, 5, 11
PAIRS = [(LSTM, keras.layers.LSTM, 2), (GRU, keras.layers.GRU, 1)]
TOLERANCE = {"float64": 1e-10, "float32": 2e-5}
# Keras on JAX has no float64: its operations round to float32 even where JAX does not.
HAS_FLOAT64 = keras.backend.backend() != "jax"


def sample(num_states, dtype="float64"):
    rng = np.random.RandomState(0)
    x = ops.convert_to_tensor(rng.randn(B, T, D), dtype)
    state = [ops.convert_to_tensor(rng.randn(B, H), dtype) for _ in range(num_states)]
    return x, state


def both(ours, theirs, dtype="float64", **kwargs):
    """One layer of each kind with the same random weights."""
    layers = [c(H, return_sequences=True, dtype=dtype, **kwargs) for c in (ours, theirs)]
    for layer in layers:
        layer.build((B, T, D))
    rng = np.random.RandomState(1)
    weights = [0.5 * rng.randn(*w.shape) for w in layers[0].get_weights()[:3]]
    for layer in layers:
        for variable, value in zip(layer.trainable_variables, weights, strict=True):
            variable.assign(value)
    return layers


def weighted_loss(layer, mask, training):
    """A scalar of all outputs and states, as a function of weights, inputs and initial state."""
    rng = np.random.RandomState()
    num_weights = len(layer.trainable_variables)
    constants = [v.value for v in layer.non_trainable_variables]

    def loss(*tensors):
        weights, x, state = tensors[:num_weights], tensors[num_weights], tensors[num_weights + 1 :]
        outputs, _ = layer.stateless_call(
            list(weights), constants, x, initial_state=list(state), mask=mask, training=training
        )
        rng.seed(2)  # the same weights at each call
        outputs = [ops.cast(output, layer.variable_dtype) for output in outputs]
        return sum(ops.sum(ops.cast(rng.randn(*o.shape), o.dtype) * o) for o in outputs)

    return loss


@pytest.mark.parametrize("ours, theirs, num_states", PAIRS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "dtype",
    ["float64", pytest.param("float32", marks=pytest.mark.slow)] if HAS_FLOAT64 else ["float32"],
)
def test_values_and_gradients_are_those_of_keras(ours, theirs, num_states, masked, compiled, dtype):
    x, state = sample(num_states, dtype)
    mask = np.random.RandomState(3).rand(B, T) < 0.6 if masked else None
    if masked:
        mask[:, 0] = True  # before the first true step Keras gives zeros, we the initial state
    layers = both(ours, theirs, dtype, return_state=True)
    arrays = [*[v.value for v in layers[0].trainable_variables], x, *state]
    values = [layer(x, initial_state=state, mask=mask, training=False) for layer in layers]
    for a, b in zip(*values, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[dtype])
    expected = gradients(weighted_loss(layers[1], mask, False), *arrays)
    for training in (True, False):  # the hand-written derivative and the backend's
        if not training and compiled:
            continue  # TensorFlow has no derivative of a loop of unknown length under XLA
        found = gradients(weighted_loss(layers[0], mask, training), *arrays, compiled=compiled)
        for a, b in zip(found, expected, strict=True):
            assert np.max(np.abs(a - b)) <= TOLERANCE[dtype] * np.max(np.abs(b))


@pytest.mark.skipif(not HAS_FLOAT64, reason="needs float64")
@pytest.mark.parametrize("ours, theirs, num_states", PAIRS)
def test_gradient_is_the_finite_difference(ours, theirs, num_states):
    x, state = sample(num_states)
    mask = np.arange(T)[None] < np.array([T, 4, 2])[:, None]
    layer, _ = both(ours, theirs, return_state=True)
    loss = weighted_loss(layer, mask, True)
    arrays = [*[v.value for v in layer.trainable_variables], x, *state]
    rng = np.random.RandomState(5)
    directions = [rng.randn(*a.shape) for a in arrays]
    step = 1e-6
    ahead, behind = (
        float(loss(*[ops.array(a + s * d) for a, d in zip(arrays, directions, strict=True)]))
        for s in (step, -step)
    )
    slope = sum(np.sum(g * d) for g, d in zip(gradients(loss, *arrays), directions, strict=True))
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-7)


@pytest.mark.parametrize("ours, theirs, num_states", PAIRS)
@pytest.mark.parametrize(
    ("compiled", "policy"),
    [
        (False, "mixed_bfloat16"),
        (True, "mixed_float16"),
        pytest.param(False, "mixed_float16", marks=pytest.mark.slow),
        pytest.param(True, "mixed_bfloat16", marks=pytest.mark.slow),
    ],
)
def test_mixed_precision_keeps_a_float32_state(ours, theirs, num_states, policy, compiled):
    x, state = sample(num_states, "float32")
    layer, oracle = both(ours, theirs, "float32", return_state=True)
    mixed, _ = both(ours, theirs, policy, return_state=True)
    outputs, *new_state = mixed(x, initial_state=state)
    assert keras.backend.standardize_dtype(outputs.dtype) == mixed.compute_dtype
    assert {keras.backend.standardize_dtype(s.dtype) for s in new_state} == {"float32"}
    precision = 2.0**-8 if policy == "mixed_bfloat16" else 2.0**-11
    np.testing.assert_allclose(
        ops.cast(outputs, "float32"), oracle(x, initial_state=state)[0], rtol=0, atol=8 * precision
    )
    arrays = [*[v.value for v in layer.trainable_variables], x, *state]
    expected = gradients(weighted_loss(oracle, None, False), *arrays)
    found = gradients(weighted_loss(mixed, None, True), *arrays, compiled=compiled)
    for a, b in zip(found, expected, strict=True):
        assert np.linalg.norm(a - b) <= 16 * precision * np.linalg.norm(b)


@pytest.mark.parametrize("layer_class", [LSTM, GRU])
def test_stateful_and_functional_batches_equal_one_long_sequence(layer_class):
    x = np.random.RandomState(0).randn(B, 13, D).astype("float32")
    whole = layer_class(H, return_sequences=True, seed=1)
    expected = ops.convert_to_numpy(whole(x))
    stateful = layer_class(H, return_sequences=True, stateful=True)
    functional = layer_class(H, return_sequences=True, return_state=True)
    for layer in (stateful, functional):
        layer.build((B, None, D))
        layer.set_weights(whole.get_weights()[:3] + layer.get_weights()[3:])
    pieces = [x[:, :2], x[:, 2:3], x[:, 3:13]]
    for _ in range(2):  # the second pass starts from zero again
        found = np.concatenate([stateful(p) for p in pieces], axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        stateful.reset_state()
    state, outputs = functional.initial_state(B), []
    for piece in pieces:
        output, *state = functional(piece, initial_state=state)
        outputs.append(output)
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), expected, atol=1e-6)


@pytest.mark.parametrize("layer_class", [LSTM, GRU])
def test_given_state_leaves_the_carried_one_alone(layer_class):
    layer = layer_class(H, stateful=True)
    x = np.ones((B, T, D), "float32")
    layer(x)
    carried = [ops.convert_to_numpy(v) for v in layer.state_variables]
    layer(x, initial_state=layer.initial_state(B))
    for variable, value in zip(layer.state_variables, carried, strict=True):
        np.testing.assert_array_equal(variable, value)


@pytest.mark.parametrize("layer_class", [LSTM, GRU])
def test_time_major(layer_class):
    x = np.random.RandomState(0).randn(B, T, D).astype("float32")
    mask = np.arange(T)[None] < np.array([T, 4, 2])[:, None]
    layer = layer_class(H, return_sequences=True)
    expected = ops.convert_to_numpy(layer(x, mask=mask))
    transposed = layer_class(H, return_sequences=True, time_major=True)
    transposed.build((T, B, D))
    transposed.set_weights(layer.get_weights())
    found = ops.convert_to_numpy(transposed(x.swapaxes(0, 1), mask=mask.T))
    np.testing.assert_allclose(found.swapaxes(0, 1), expected, atol=1e-6)


@pytest.mark.parametrize("layer_class", [LSTM, GRU])
def test_weight_dropout_acts_in_training_only_and_follows_the_seed(layer_class):
    x = np.ones((B, T, D), "float32")
    layer = layer_class(H, weight_dropout=0.5, seed=7)
    first = ops.convert_to_numpy(layer(x, training=True))
    assert np.abs(first - layer(x, training=True)).max() > 1e-4
    np.testing.assert_array_equal(layer(x), layer(x))
    again = layer_class(H, weight_dropout=0.5, seed=7)
    again.build(x.shape)
    again.set_weights(layer.get_weights()[:3] + again.get_weights()[3:])
    np.testing.assert_array_equal(again(x, training=True), first)


@pytest.mark.parametrize("layer_class", [LSTM, GRU])
def test_saving(layer_class, tmp_path):
    inputs = keras.Input((None, D))
    layer = layer_class(
        H, return_state=True, weight_dropout=0.3, recurrent_initializer="glorot_normal", seed=3
    )
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    x = np.random.RandomState(0).randn(B, T, D)
    for a, b in zip(model(x), loaded(x), strict=True):
        np.testing.assert_array_equal(a, b)
    assert loaded.layers[1].get_config() == layer.get_config()


@pytest.mark.parametrize("layer_class", [LSTM, GRU])
def test_regularizers_see_the_weights(layer_class):
    layer = layer_class(H, kernel_regularizer="l2", recurrent_regularizer="l2")
    layer(np.ones((B, T, D)))
    assert len(layer.losses) == 2


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"`units` must be positive. Received: units=0"):
        LSTM(0)
    with pytest.raises(ValueError, match=r"`weight_dropout` must be in"):
        GRU(3, weight_dropout=1.0)
    with pytest.raises(ValueError, match=r"static batch size.*Received: input_shape"):
        LSTM(3, stateful=True).build((None, None, 5))
