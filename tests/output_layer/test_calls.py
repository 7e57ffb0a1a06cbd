"""Every way to call a head that a Keras user may try: it works, or one line says why not."""

import subprocess
import sys

import keras
import numpy as np
import pytest

import keras_drill
from tests.gradients import value_and_gradients
from tests.output_layer.test_frozen_and_folded import HEADS, B, D, T, V, data, make

on_jax = keras.backend.backend() == "jax"  # which compiles anew for every shape
every_head = pytest.mark.parametrize("name", ["tied", "kerbs"] if on_jax else HEADS)
# Every composition; what differs otherwise is the labels, of which a call's shapes know nothing.
some_heads = pytest.mark.parametrize("name", ["tied"] if on_jax else ["tied", "mixture", "kerbs"])


@some_heads
def test_lists_and_numpy_arrays(name):
    head = make(name)
    hidden, targets = data()
    weights = np.random.default_rng(1).random((B, T)).astype("float32")
    expected = head.loss(keras.ops.convert_to_tensor(hidden), targets, weights, training=False)
    lists = hidden.tolist(), targets.tolist(), weights.tolist()
    np.testing.assert_allclose(head.loss(*lists, training=False), expected, rtol=1e-6)
    double = hidden.astype("float64"), targets.astype("int64"), weights.astype("float64")
    np.testing.assert_allclose(head.loss(*double, training=False), expected, rtol=1e-6)
    whole = np.ones((B, T, D), int)
    as_floats = head.loss(whole.astype("float32"), targets, training=False)
    np.testing.assert_allclose(head.loss(whole, targets, training=False), as_floats)


@some_heads
def test_log_prob_with_weights(name):
    head = make(name)
    hidden, targets = data()
    weights = np.random.default_rng(1).integers(0, 3, (B, T)).astype("float32")
    expected = weights * np.asarray(head.log_prob(hidden, targets))
    wild = np.where(weights == 0, -100, targets)
    np.testing.assert_allclose(head.log_prob(hidden, wild, weights), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, T), (B, 0), (0,)])
@some_heads
def test_shapes_of_empty_batches(name, shape):
    head = make(name)
    hidden, targets = np.ones((*shape, D), "float32"), np.ones(shape, "int32")
    loss, log_probs = head.loss_and_log_prob(hidden, targets)
    assert float(loss) == 0 and tuple(log_probs.shape) == shape
    assert tuple(head.loss(hidden, targets, reduction="none").shape) == shape
    assert tuple(head(hidden).shape) == (*shape, V)


@every_head
def test_empty_batches(name):
    head, shape = make(name), (0, T)
    hidden, targets = np.ones((*shape, D), "float32"), np.ones(shape, "int32")
    weights = np.ones(shape, "float32")
    for reduction in ("sum_over_batch_size", "mean_with_sample_weight", "sum"):
        assert float(head.loss(hidden, targets, weights, reduction=reduction)) == 0
    assert tuple(head.log_prob(hidden, targets, weights).shape) == shape
    variables = head.trainable_variables
    loss, gradients, d_hidden = value_and_gradients(
        lambda hidden: head.loss(hidden, targets), variables, hidden
    )
    assert loss == 0 and d_hidden.shape == hidden.shape
    for gradient, variable in zip(gradients, variables, strict=True):
        np.testing.assert_array_equal(gradient, np.zeros(variable.shape), err_msg=variable.path)


@some_heads
def test_time_distributed(name):
    head = make(name)
    x = keras.Input((T, D))
    model = keras.Model(x, keras.layers.TimeDistributed(head)(x))
    hidden, _ = data()
    np.testing.assert_allclose(model(hidden), head(hidden), rtol=1e-4, atol=1e-5)


@some_heads
def test_masks_go_through(name):
    head = make(name)
    tokens = np.array([[3, 0, 1]])
    hidden = keras.layers.Embedding(V, D, mask_zero=True)(tokens)
    mask = keras_drill.ops.private_interfaces.keras_mask(head(hidden))
    np.testing.assert_array_equal(mask, tokens != 0)


@pytest.mark.slow
def test_static_and_dynamic_shapes_meet():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("shapes are static on JAX")
    import tensorflow as tf

    head = make("drill")
    hidden, targets = data()
    unknown, known = tf.TensorSpec((None, None, D)), tf.TensorSpec((B, T, D))
    words, fixed = tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((B, T), tf.int64)
    for signature in ((unknown, fixed), (known, words), (unknown, words)):
        loss = tf.function(lambda *x: head.loss(*x, training=False), input_signature=signature)
        expected = head.loss(hidden, targets, training=False)
        np.testing.assert_allclose(loss(hidden, targets), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda head: head.loss(np.ones((B, T, D + 1)), np.ones((B, T), int)),
            r"`hidden` must be 13 wide.*Received: hidden of shape \(5, 7, 14\)",
        ),
        (lambda head: head(np.ones((B, T, D + 1))), r"`hidden` must be 13 wide"),
        (lambda head: head(keras.Input((T, D + 1))), r"`hidden` must be 13 wide"),
        (lambda head: head.log_prob(np.ones(()), 1), r"`hidden` must be of shape \[\.\.\., d_h\]"),
        (
            lambda head: keras_drill.SoftmaxOutput(V)(keras.Input((T, None))),
            r"`hidden` must be of shape \[\.\.\., d_h\].*Received: hidden of shape \(None, 7, None",
        ),
        (
            lambda head: head.loss(*data(), np.ones((B, T + 1))),
            r"`sample_weight` must have.*sample_weight of shape \(5, 8\), targets of shape",
        ),
        (lambda head: head.loss(*data(), np.ones(T)), "`sample_weight` must have"),
        (lambda head: head.log_prob(*data(), np.ones((B, T, 1))), "`sample_weight` must have"),
        (lambda head: head.loss(data()[0], np.ones(B, int)), "`targets` must have the shape"),
    ],
)
def test_wrong_shapes_are_named(call, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call(make("tied"))


@pytest.mark.parametrize("shape", [(B,), (B, 1), (B, T), (1, T), ()])
def test_weights_of_leading_axes(shape):
    head = make("tied")
    hidden, targets = data()
    weights = np.random.default_rng(1).random(shape).astype("float32")
    leading = weights.reshape(*shape, *(1,) * (2 - len(shape)))
    expected = -(leading * np.asarray(head.log_prob(hidden, targets))).mean()
    np.testing.assert_allclose(head.loss(hidden, targets, weights), expected, rtol=1e-5)


def test_regularizer_constraint_and_initializer():
    frequencies = np.linspace(-3, 3, V).astype("float32")

    def log_frequencies(shape, dtype=None):
        return keras.ops.convert_to_tensor(frequencies, dtype)

    head = keras_drill.SoftmaxOutput(
        V,
        embeddings_regularizer=keras.regularizers.L2(0.5),
        embeddings_constraint=keras.constraints.UnitNorm(axis=1),
        bias_initializer=log_frequencies,
    )
    head.build((None, D))
    np.testing.assert_array_equal(head.bias, frequencies)
    expected = 0.5 * (np.asarray(head.embeddings) ** 2).sum()
    np.testing.assert_allclose(sum(head.losses), expected, rtol=1e-5)
    model = keras.Sequential([keras.Input((D,)), head])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data()[0][:, 0], data()[1][:, 0], verbose=0)
    np.testing.assert_allclose(np.linalg.norm(head.embeddings, axis=1), 1, rtol=1e-5)


def test_they_are_in_the_config():
    for make_head in (keras_drill.SoftmaxOutput, keras_drill.KernelizedBayesianSoftmax):
        head = make_head(
            V,
            use_bias=True,
            embeddings_regularizer="l2",
            embeddings_constraint="unit_norm",
            bias_initializer="ones",
        )
        again = type(head).from_config(head.get_config())
        again.build((None, D))
        assert isinstance(again.embeddings_regularizer, keras.regularizers.L2)
        assert isinstance(again.embeddings_constraint, keras.constraints.UnitNorm)
        assert np.asarray(again.bias).min() == 1


@pytest.mark.parametrize("name", ["embeddings_regularizer", "embeddings_constraint"])
def test_a_shared_embedding_has_its_own(name):
    value = "l2" if "regularizer" in name else "unit_norm"
    with pytest.raises(ValueError, match=f"`{name}` is only for the layer's own label embeddings"):
        keras_drill.TiedOutput(V, keras.layers.Embedding(V, D), **{name: value})


@pytest.mark.slow
def test_other_backends_are_refused_at_once():
    pretend = "import keras; keras.backend.backend = lambda: 'torch'\n"
    result = subprocess.run(
        [sys.executable, "-c", pretend + "import keras_drill; keras_drill.OutputLayer"],
        capture_output=True,
        text=True,
    )
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: keras_drill runs on Keras' TensorFlow and JAX backends")
    assert last.endswith("Received: backend 'torch'")


@every_head
def test_before_a_layer_is_built(name):
    hidden, _ = data()
    built = make(name)
    labels = built.encoded_labels()
    head = built.from_config(built.get_config())
    with pytest.raises(ValueError, match=r"must be built .* Received: .*, which is not built"):
        head.encoded_labels()
    assert not head.built
    assert tuple(head.log_probs(hidden, labels).shape) == (B, T, V)
    assert head.built and head.encoded_labels().shape == labels.shape
