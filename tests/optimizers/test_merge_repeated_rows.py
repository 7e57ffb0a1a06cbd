import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.optimizers import merge_repeated_rows

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="where gradients of tables have repeated rows"
)
V, D, B, T = 11, 5, 3, 7
IDS = [[4, 4, 9, 4], [0, 9, 4, 10]]
OPTIMIZERS = ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Nadam", "Ftrl", "Adafactor", "Lamb"]
CLIPPING = [{}, {"clipvalue": 2.0}, {"clipnorm": 2.0}, {"global_clipnorm": 2.0}]


def steps_of(optimizer, dense=False, ids=IDS, dtype="float32"):
    """A table after two steps on a loss whose gradient differs from lookup to lookup."""
    import tensorflow as tf

    table = keras.Variable(np.ones((V, D)), dtype=dtype)
    factors = tf.constant(np.arange(len(np.ravel(ids)) * D) % 7 - 2, dtype)
    for _ in range(2):
        with tf.GradientTape() as tape:
            looked_up = tf.reshape(tf.gather(table.value, np.array(ids, "int32")), [-1])
            loss = tf.reduce_sum(looked_up * factors)
        gradient = tape.gradient(loss, table.value)
        assert isinstance(gradient, tf.IndexedSlices)
        optimizer.apply([tf.convert_to_tensor(gradient) if dense else gradient], [table])
    return keras.ops.convert_to_numpy(keras.ops.cast(table, "float32"))


@pytest.mark.parametrize("clipping", CLIPPING, ids=lambda options: next(iter(options), "whole"))
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_tables_gradient(name, clipping):
    def make():
        return getattr(keras.optimizers, name)(0.1, **clipping)

    expected = steps_of(make(), dense=True)
    np.testing.assert_allclose(steps_of(merge_repeated_rows(make())), expected, rtol=1e-5)


@pytest.mark.parametrize("wrap", [keras.optimizers.LossScaleOptimizer, None])
@pytest.mark.parametrize("options", [{"gradient_accumulation_steps": 2}, {"use_ema": True}])
def test_options_of_optimizers(wrap, options):
    def make():
        optimizer = keras.optimizers.Adam(0.1, **options)
        return optimizer if wrap is None else wrap(optimizer, initial_scale=1.0)

    expected = steps_of(make(), dense=True)
    assert not np.all(expected == 1)
    np.testing.assert_allclose(steps_of(merge_repeated_rows(make())), expected, rtol=1e-5)


@pytest.mark.skipif(
    not hasattr(keras.optimizers, "MultiOptimizer"), reason="this Keras has no MultiOptimizer"
)
def test_several_optimizers_in_one():
    def make():
        inner = keras.optimizers.Adam(0.1, clipnorm=2.0)
        return keras.optimizers.MultiOptimizer(lambda variable: inner)

    expected = steps_of(make(), dense=True)
    assert not np.allclose(steps_of(make()), expected, atol=0.01)
    np.testing.assert_allclose(steps_of(merge_repeated_rows(make())), expected, rtol=1e-5)


def test_keras_itself_still_needs_it():
    """Where this fails, Keras merges rows, and `merge_repeated_rows` can go."""
    expected = steps_of(keras.optimizers.Adam(0.1), dense=True)
    assert not np.allclose(steps_of(keras.optimizers.Adam(0.1)), expected, atol=0.01)


def test_no_lookups():
    empty = np.zeros((0, T))
    assert np.all(steps_of(merge_repeated_rows(keras.optimizers.Adam(0.1)), ids=empty) == 1)


def test_half_precision():
    merged = steps_of(merge_repeated_rows(keras.optimizers.RMSprop(0.1)), dtype="bfloat16")
    expected = steps_of(keras.optimizers.RMSprop(0.1), dense=True, dtype="bfloat16")
    assert not np.all(expected == 1)
    np.testing.assert_allclose(merged, expected, atol=0.01)


def test_no_gradients_and_dense_ones_are_left_as_they_are():
    def steps(optimizer):
        one, two = keras.Variable(np.ones((V, D))), keras.Variable(np.ones(D))
        optimizer.build([one, two])
        optimizer.apply([keras.ops.ones((V, D)), None], [one, two])
        return keras.ops.convert_to_numpy(one)

    with pytest.warns(UserWarning, match="Gradients do not exist"):
        merged = steps(merge_repeated_rows(keras.optimizers.Adam(0.1)))
        np.testing.assert_array_equal(merged, steps(keras.optimizers.Adam(0.1)))


def test_an_optimizer_stays_what_it_is():
    optimizer = keras.optimizers.Adam(0.1)
    apply = merge_repeated_rows(optimizer).apply
    assert merge_repeated_rows(optimizer) is optimizer and optimizer.apply is apply
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(copy) is keras.optimizers.Adam and copy.get_config() == optimizer.get_config()


def densified(optimizer):
    """What steps should be: each gradient as a whole, before all else."""
    import tensorflow as tf

    apply = optimizer.apply

    def apply_dense(grads, trainable_variables=None):
        return apply([tf.convert_to_tensor(g) for g in grads], trainable_variables)

    optimizer.apply = apply_dense
    return optimizer


def train(optimizer, jit_compile, policy="float32"):
    """The weights of a language model whose input embedding is not tied, after some steps."""
    keras.utils.set_random_seed(3)
    tokens = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(V, D, dtype=policy)(tokens)
    hidden = keras.layers.GRU(D, return_sequences=True, dtype=policy)(embedded)
    head = keras_drill.OutputLayer(V, dtype=policy)
    model = keras_drill.LanguageModel(keras.Model(tokens, hidden), head, dtype=policy)
    model.compile(optimizer, jit_compile=jit_compile)
    rng = np.random.default_rng(5)
    inputs = np.minimum(rng.integers(0, V, (B, T)), rng.integers(0, V, (B, T)))
    model.fit(inputs, rng.integers(0, V, (B, T)), epochs=3, verbose=0)
    return [keras.ops.convert_to_numpy(variable) for variable in model.trainable_variables]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "jit_compile", "policy"),
    [
        ("Adam", False, "float32"),
        ("SGD", False, "float32"),
        ("Adam", True, "float32"),
        ("SGD", True, "float32"),
        ("Adam", False, "mixed_float16"),
        ("SGD", False, "mixed_bfloat16"),
    ],
)
def test_models_do_it(name, jit_compile, policy):
    def make():
        if name == "Adam":
            return keras.optimizers.Adam(0.1)
        return keras.optimizers.SGD(1.0, global_clipnorm=0.01)

    expected = train(densified(make()), jit_compile, policy)
    for a, b in zip(train(make(), jit_compile, policy), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5)
