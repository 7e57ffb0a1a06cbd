"""The layer in which numbers stopped being numbers, wherever it is."""

import re

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.tasks.errors import Diverged
from keras_drill.workbench.training.find_divergence import first_not_finite
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.train_run import train_run
from tests.workbench.training.tiny import tiny_config

V = 11


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_training_that_diverges_names_the_layer(corpus, tmp_path, precision, capsys):
    """A checkpoint before it is there in one case, and in the other the beginning is."""
    every = 2 if precision == "float32" else 0
    config = tiny_config(
        corpus,
        optimizer_kind="sgd",
        optimizer_learning_rate=1e37,
        optimizer_clip_norm=0.25,
        training_checkpoint_every=every,
        training_seed=3,
    )
    folder = RunFolder(tmp_path / "run")
    keras.config.set_dtype_policy(precision)
    try:
        with pytest.raises(Diverged, match=r"in step [2-9]: the (output|gradient|loss) of"):
            train_run(config, folder)
    finally:
        keras.config.set_dtype_policy("float32")
    assert "searching for the layer" in capsys.readouterr().err
    assert not folder.is_trained


def make_model(*between):
    """Two recurrent layers, what is between them and the head, and the head."""
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.Embedding(V, 5, name="words")(tokens)
    hidden = keras_drill.layers.LSTM(7, return_sequences=True, name="first")(hidden)
    hidden = keras.layers.GRU(5, return_sequences=True, name="second")(hidden)
    for layer in between:
        hidden = layer(hidden)
    return keras_drill.LanguageModel(
        keras.Model(tokens, hidden), keras_drill.SoftmaxOutput(V, name="softmax")
    )


def named_in(model):
    tokens = np.arange(6).reshape(2, 3)
    return first_not_finite(model, (tokens, tokens + 1))


@pytest.mark.parametrize("name", ["words", "first", "second"])
def test_the_first_output_is_named(name):
    model = make_model()
    kernel = model.backbone.get_layer(name).trainable_variables[0]
    kernel.assign(np.full(kernel.shape, np.nan))
    assert re.fullmatch(rf"the output of the layer (.*/)?{name}(/.*)?", named_in(model))


def test_the_loss_is_named_where_only_that_is_none():
    model = make_model()
    model(np.zeros((1, 1), "int32"))
    model.head.bias.assign(np.full(V, np.inf))
    assert re.fullmatch(r"the loss of the output layer (.*/)?softmax", named_in(model))


def test_the_gradient_nearest_to_the_loss_is_named():
    """The square root has no slope at 0, where its value is a number."""
    dense = keras.layers.Dense(5, activation=lambda x: keras.ops.sqrt(0.0 * x), name="rooted")
    model = make_model(dense)
    assert named_in(model).startswith("the gradient of rooted/")


def test_a_norm_that_is_too_large_is_told_from_gradients_that_are():
    model = make_model()
    model(np.zeros((1, 1), "int32"))
    assert named_in(model) == "a gradient that is too large for float32 to hold its norm"
