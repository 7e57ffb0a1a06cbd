import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import WordTokenizer
from keras_drill.export import NarrowWeights, TextModel, export_saved_model
from keras_drill.export.narrow_weights import num_bytes, served_signatures
from tests.decoding.tiny_models import awd_lstm_with_drill, awd_lstm_with_kerbs, gru_with_mixture
from tests.export.checks import check_operations

KINDS = ["bfloat16", "float16", "int8"]
TEXTS = ["The cat sat on a mat.", "", "an unknown zebra, é!\nThe dog ran (here)\n"]
SETTINGS = {"max_new_tokens": 5, "k": 3}


def rounded(value, kind):
    """What is left of a float32 matrix, by NumPy."""
    if kind == "float16":
        return value.astype("float16").astype("float32")
    if kind == "bfloat16":  # to the nearest of the numbers whose lower 16 bits are 0, ties to even
        bits = value.view("uint32").astype("uint64")
        bits += 0x7FFF + ((bits >> 16) & 1)
        return (bits & 0xFFFF0000).astype("uint32").view("float32")
    candidates = []
    for axis in (1, 0):
        scale = np.abs(value).max(axis=axis, keepdims=True) / np.float32(127)
        candidates.append(np.rint(value / scale) * scale)
    return min(candidates, key=lambda one: np.square(one - value).sum())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_rounded_and_nothing_else_changes(kind, model, vocabulary):
    module = TextModel(model, WordTokenizer(), vocabulary, **SETTINGS)
    found = served_signatures(module, kind)["score"](tf.constant(TEXTS))
    by_hand = awd_lstm_with_drill()
    expected = TextModel(by_hand, WordTokenizer(), vocabulary, **SETTINGS)
    for variable in {id(v): v for v in expected.weights}.values():
        if len(variable.shape) == 2:
            variable.assign(rounded(variable.numpy(), kind))
    np.testing.assert_allclose(
        found["log_probs"], expected.score(TEXTS)["log_probs"], rtol=1e-4, atol=1e-5
    )
    wide = module.score(TEXTS)["log_probs"].numpy()
    assert 1e-4 < np.abs(found["log_probs"] - wide).max() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [awd_lstm_with_kerbs, gru_with_mixture])
def test_other_heads_keep_their_words(make, kind, vocabulary):
    module = TextModel(make(), WordTokenizer(), vocabulary, **SETTINGS)
    narrow = served_signatures(module, kind)
    assert set(narrow) == set(module.signatures())
    found, wide = narrow["score"](tf.constant(TEXTS)), module.score(TEXTS)
    np.testing.assert_allclose(found["log_probs"], wide["log_probs"], atol=0.3)
    assert (found["log_probs"] != wide["log_probs"]).numpy().any()


@pytest.mark.slow
def test_an_export_is_as_small_as_it_says_and_loads_anywhere(model, vocabulary, tmp_path):
    sizes = {}
    for kind in ("float32", "int8"):
        folder = export_saved_model(
            model, tmp_path / kind, WordTokenizer(), vocabulary, weights=kind, **SETTINGS
        )
        check_operations(folder)
        loaded = tf.saved_model.load(str(folder))
        module = TextModel(model, WordTokenizer(), vocabulary, **SETTINGS)
        narrow = served_signatures(module, kind)
        examples = tf.constant([b""])
        for name, value in loaded.signatures["examples"](examples).items():
            np.testing.assert_array_equal(value, narrow["examples"](examples)[name])
        score = loaded.signatures["score"](tf.constant(TEXTS))
        np.testing.assert_array_equal(
            score["log_probs"], narrow["score"](tf.constant(TEXTS))["log_probs"]
        )
        sizes[kind] = num_bytes(narrow["score"])
    matrices = [v for v in {id(v): v for v in module.weights}.values() if len(v.shape) == 2]
    numbers = sum(int(np.prod(v.shape)) for v in matrices)
    scales = sizes["int8"] - (sizes["float32"] - 3 * numbers)
    assert 0 < scales <= 4 * sum(max(v.shape) for v in matrices)


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_what_cannot_be_kept_is_refused(kind):
    layer = keras.layers.Dense(2, use_bias=False)
    layer.build((None, 3))
    layer.kernel.assign(np.full((3, 2), 1e5 if kind == "float16" else np.inf))
    with pytest.raises(ValueError, match=rf"finite values, .* for {kind}. Received: .*kernel"):
        NarrowWeights(layer.variables, kind)


def test_kinds():
    with pytest.raises(ValueError, match=r"`kind` must be one of .* Received: kind='int4'"):
        NarrowWeights([], "int4")
