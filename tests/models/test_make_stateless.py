"""Models that carry state refuse other batches, and have copies that take any."""

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.layers import GRU, LSTM
from keras_drill.layers.carried_state import carried_state, zero_carried_state
from keras_drill.models import make_stateless, with_batch_size

V, D, B, T = 31, 5, 3, 7
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="sizes that are known only when a graph runs"
)
REFUSED = "Every batch must have 3 rows, .* the state of 3 rows .* Received:.*shape"


def tokens(rows):
    return np.random.default_rng(0).integers(0, V, (rows, T))


def tied(backbone):
    return keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, backbone.embedding))


def sense_feedback():
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=67, weighting="posterior")
    return keras_drill.models.AWDLSTM(
        V, D, 7, 2, stateful=True, batch_size=B, embedding=embedding, output_dim=D
    )


MODELS = {
    "awd-lstm": lambda: tied(keras_drill.models.AWDLSTM(V, D, 7, 2, stateful=True, batch_size=B)),
    "gru": lambda: tied(
        keras_drill.models.GRULanguageBackbone(V, D, 7, 2, stateful=True, batch_size=B)
    ),
    "posterior": lambda: keras_drill.LanguageModel(sense_feedback(), keras_drill.SoftmaxOutput(V)),
}


@pytest.mark.parametrize("layer", [LSTM, GRU])
@pytest.mark.parametrize("time_major", [False, True])
def test_a_stateful_layer_refuses_another_batch(layer, time_major):
    layer = layer(D, stateful=True, time_major=time_major)
    x = np.ones((B, T, D))
    layer(np.swapaxes(x, 0, 1) if time_major else x)
    for rows in (1, 2 * B):
        x = np.ones((rows, T, D))
        with pytest.raises(ValueError, match=REFUSED):
            layer(np.swapaxes(x, 0, 1) if time_major else x)
    layer(np.ones((T, 1, D)) if time_major else x[:1], initial_state=layer.initial_state(1))


@pytest.mark.parametrize("name", MODELS)
def test_a_stateful_model_refuses_another_batch(name):
    model = MODELS[name]()
    assert model(tokens(B)).shape == (B, T, V)
    for rows in (1, 2 * B):
        with pytest.raises(ValueError, match=REFUSED):
            model(tokens(rows))


@on_tensorflow
@pytest.mark.parametrize(
    ("name", "jit_compile"), [("awd-lstm", False), ("awd-lstm", True), ("posterior", False)]
)
def test_a_traced_stateful_model_refuses_another_batch(name, jit_compile):
    import tensorflow as tf

    model = MODELS[name]()
    signature = [tf.TensorSpec((None, None), "int32")]
    traced = tf.function(model, input_signature=signature, jit_compile=jit_compile)
    assert traced(tokens(B).astype("int32")).shape == (B, T, V)
    expected = "Every_batch_must_have_3_rows" if jit_compile else REFUSED
    for rows in (1, 2 * B):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"(?s){expected}"):
            traced(tokens(rows).astype("int32"))


def test_predicting_one_row_does_not_give_many():
    model = MODELS["awd-lstm"]()
    model.compile("sgd", jit_compile=False)
    error = ValueError
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        error = (ValueError, tf.errors.InvalidArgumentError)
    with pytest.raises(error, match=f"(?s){REFUSED}"):
        model.predict(tokens(1), verbose=0)


@pytest.mark.parametrize("name", ["awd-lstm", "posterior"])
def test_the_stateless_copy_takes_any_batch_and_gives_the_same(name, tmp_path):
    model = MODELS[name]()
    expected = np.asarray(model(tokens(B)))
    zero_carried_state(model)
    model.save(tmp_path / "model.keras")
    for original in (model, keras.saving.load_model(tmp_path / "model.keras")):
        copy = make_stateless(original)
        assert carried_state(copy) == []
        for rows in (1, 2 * B):
            found = np.asarray(copy(np.resize(tokens(B), (rows, T))))
            np.testing.assert_allclose(found, np.resize(expected, found.shape), atol=1e-5)
    assert carried_state(model)


def test_functional_models_and_layers_of_keras():
    x = keras.Input((None, D), batch_size=B)
    y = keras.layers.LSTM(D, return_sequences=True, stateful=True)(x)
    model = keras.Model(x, GRU(D, stateful=True)(y))
    copy = make_stateless(model)
    one = np.random.default_rng(0).normal(size=(1, T, D)).astype("float32")
    expected = np.asarray(model(np.repeat(one, B, axis=0)))[:1]
    np.testing.assert_allclose(copy(one), expected, atol=1e-6)


def test_a_model_that_is_not_built_is_refused():
    with pytest.raises(ValueError, match="`model` must be built"):
        make_stateless(keras.Sequential([LSTM(D, stateful=True)]))


@pytest.mark.parametrize("name", MODELS)
def test_the_copy_of_other_rows_carries_their_state(name):
    model = MODELS[name]()
    expected = np.asarray(model(tokens(B)))
    for rows in (1, 2 * B):
        copy = with_batch_size(model, rows)
        halves = np.split(np.resize(tokens(B), (rows, T)), [3], axis=1)
        found = np.concatenate([np.asarray(copy(half)) for half in halves], axis=1)
        np.testing.assert_allclose(found, np.resize(expected, found.shape), atol=1e-5)
    with pytest.raises(
        ValueError, match=r"`batch_size` must be at least 1. Received: batch_size=0"
    ):
        with_batch_size(model, 0)
