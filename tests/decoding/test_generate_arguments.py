"""What people give to `generate` at first."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import generate
from tests.decoding.tiny_models import V, awd_lstm_with_drill

END = 1


@pytest.fixture(scope="module")
def model():
    return awd_lstm_with_drill()


@pytest.mark.parametrize(
    "prompts", ["do you", ["do you"], [b"do"], [3, 5], [[0.5]], np.zeros((1, 2, 2), int), [[True]]]
)
def test_prompts_that_are_no_ids_are_refused(model, prompts):
    with pytest.raises(ValueError, match=r"must be rows of token ids.*TextModel.*Received: "):
        generate(model, prompts, 7)


def test_tensors_are_prompts(model):
    expected = ops.convert_to_numpy(generate(model, [[3, 5], [7, 2]], 7).tokens)
    found = generate(model, ops.convert_to_tensor([[3, 5], [7, 2]]), 7).tokens
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's ragged tensors")
def test_ragged_tensors_are_prompts(model):
    import tensorflow as tf

    found = generate(model, tf.ragged.constant([[3, 5], [7]]), 7)
    np.testing.assert_array_equal(found.tokens, generate(model, [[3, 5], [7]], 7).tokens)


def test_prompts_that_end_are_told_of(model):
    with pytest.warns(
        UserWarning, match=r"1 of 3 `prompts` end with the end token.*\[3, 1\] at ro"
    ):
        result = generate(model, [[3], [3, END], [END]], 7, end_token=END)
    assert int(result.lengths[1]) > 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generate(model, [[3, END, 2], [END]], 7, end_token=END)
        generate(model, [[3, END]], 7)


@pytest.mark.slow
def test_a_keras_model_with_an_output_layer_generates():
    keras.utils.set_random_seed(2)
    embedding = keras.layers.Embedding(V, 5)
    head = keras_drill.DrillOutput(V, embedding, depth=1)
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.LSTM(5, return_sequences=True)(embedding(tokens))
    plain = keras.Model(tokens, head(hidden))
    for variable in plain.trainable_variables:
        variable.assign(np.random.default_rng(3).normal(size=variable.shape))
    model = keras_drill.LanguageModel(keras.Model(tokens, hidden), head)
    found, expected = (generate(each, [[3, 5], [7]], 7) for each in (plain, model))
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (found.tokens, expected.tokens)))
    written = ops.convert_to_numpy(found.tokens)[:1]
    assert written[0, 2] == int(ops.convert_to_numpy(plain(written[:, :2]))[0, -1].argmax())


def test_other_models_are_told_what_to_become():
    tokens = keras.Input((None,), dtype="int32")
    plain = keras.Model(tokens, keras.layers.Dense(V)(keras.layers.Embedding(V, 5)(tokens)))
    for wrong in (plain, keras.Sequential(), object()):
        with pytest.raises(ValueError, match=r"LanguageModel\(backbone, head\).*Received: "):
            generate(wrong, [[1]], 3)
