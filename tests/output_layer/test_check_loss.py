"""Losses that take log-probabilities for probabilities are refused where a model's are known."""

import keras
import numpy as np
import pytest

import keras_drill

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="on JAX a layer does not know the model"
)
V, D, B, T = 11, 5, 3, 7
WRONG = {
    "sparse_categorical_crossentropy": lambda: "sparse_categorical_crossentropy",
    "SparseCategoricalCrossentropy": keras.losses.SparseCategoricalCrossentropy,
    "function": lambda: keras.losses.sparse_categorical_crossentropy,
    "CategoricalCrossentropy": keras.losses.CategoricalCrossentropy,
}
REFUSED = r"must be made with `from_logits=True`.*learns nothing. Received: loss="


def right():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make_model(two_outputs=False, names=False):
    tokens = keras.Input((T,), dtype="int32")
    hidden = keras.layers.Embedding(V, D)(tokens)
    words = keras_drill.SoftmaxOutput(V, name="words")(hidden)
    tag = keras.layers.Dense(1, name="tag")(hidden)
    if names:
        return keras.Model(tokens, {"words": words, "tag": tag})
    return keras.Model(tokens, [words, tag] if two_outputs else words)


def data():
    tokens = np.arange(B * T).reshape(B, T) % V
    return tokens, (tokens + 1) % V


@pytest.mark.parametrize("loss", WRONG)
@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}], ids=str)
def test_a_loss_of_probabilities_is_refused(loss, options):
    model = make_model()
    model.compile("sgd", WRONG[loss](), **options)
    x, y = data()
    if loss == "CategoricalCrossentropy":
        y = keras.utils.to_categorical(y, V)
    with pytest.raises(ValueError, match=REFUSED):
        model.fit(x, y, verbose=0)


def test_a_sequential_model_is_checked():
    model = keras.Sequential([keras.layers.Embedding(V, D), keras_drill.SoftmaxOutput(V)])
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match=REFUSED):
        model.fit(*data(), verbose=0)


@pytest.mark.parametrize("names", [True, False])
def test_of_several_outputs_the_words_are_checked(names):
    x, y = data()
    targets = {"words": y, "tag": y.astype("float32")}
    for words, is_right in ((right(), True), ("sparse_categorical_crossentropy", False)):
        model = make_model(two_outputs=True, names=names)
        losses = {"words": words, "tag": "mse"}
        model.compile("sgd", losses if names else list(losses.values()))
        given = targets if names else list(targets.values())
        if is_right:
            model.fit(x, given, verbose=0)
        else:
            with pytest.raises(ValueError, match=REFUSED):
                model.fit(x, given, verbose=0)


def test_other_losses_and_models_are_left_alone():
    x, y = data()
    model = make_model()
    model.compile("sgd", right())
    assert model.fit(x, y, verbose=0).history["loss"][0] < 2 * np.log(V)
    model.compile("sgd", lambda y_true, y_pred: -y_pred[..., 0])
    model.fit(x, y, verbose=0)
    softmax = keras.Sequential(
        [keras.layers.Embedding(V, D), keras_drill.SoftmaxOutput(V), keras.layers.Softmax()]
    )
    softmax.compile("sgd", "sparse_categorical_crossentropy")
    softmax.fit(x, y, verbose=0)
