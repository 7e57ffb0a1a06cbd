"""The learning rate of a label network, as a multiple of the optimizer's."""

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.label_encoders import ResidualNetwork

V, D, N = 31, 13, 17
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "clipped": lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.01),
    "adam": lambda: keras.optimizers.Adam(0.01),
    "adamw": lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1),
    "lion": lambda: keras.optimizers.Lion(0.01),
}


def make_model(multiplier, **options):
    network = keras_drill.ResidualLabelEncoder(
        kernel_initializer=keras.initializers.GlorotUniform(seed=5),
        learning_rate_multiplier=multiplier,
        **options,
    )
    embedding = keras.layers.Embedding(
        V, D, embeddings_initializer=keras.initializers.RandomUniform(-1, 1, seed=3)
    )
    head = keras_drill.OutputLayer(V, embedding=embedding, label_encoder=network)
    tokens = keras.Input((None,), dtype="int32")
    return keras_drill.LanguageModel(keras.Model(tokens, embedding(tokens)), head)


def effective(model):
    """The values of the label network's weights, as its products use them."""
    network = model.head.label_encoder.label_network
    scale = network.learning_rate_multiplier
    return [scale * np.asarray(w) for w in network.trainable_weights]


def one_step(model, optimizer):
    rng = np.random.default_rng(7)
    tokens, targets = rng.integers(0, V, (2, 5, N))
    model.compile(optimizer)
    before = effective(model)
    model.train_on_batch(tokens, targets)
    return [new - old for new, old in zip(effective(model), before, strict=True)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_first_step_is_the_multiple_of_an_ordinary_one(optimizer):
    c = 0.1
    ordinary = one_step(make_model(1.0, depth=2), OPTIMIZERS[optimizer]())
    scaled = one_step(make_model(c, depth=2), OPTIMIZERS[optimizer]())
    decay = 0.01 * 0.1 if optimizer == "adamw" else 0.0
    initial = effective(make_model(1.0, depth=2))
    for step, full, start in zip(scaled, ordinary, initial, strict=True):
        # Decay shrinks a weight as it would any other: it is no step along the gradient.
        np.testing.assert_allclose(step + decay * start, c * (full + decay * start), atol=2e-7)
        assert np.abs(full).max() > 1e-6


@pytest.mark.parametrize("variational", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_the_function_is_that_of_an_ordinary_network(training, variational):
    embeddings = np.random.default_rng(3).normal(size=(V, D)).astype("float32")
    labels = []
    for multiplier in (1.0, 0.01):
        network = ResidualNetwork(
            depth=3,
            dropout=0.4,
            variational_dropout=variational,
            kernel_initializer=keras.initializers.GlorotUniform(seed=5),
            seed=11,
            learning_rate_multiplier=multiplier,
        )
        labels.append(network(embeddings, training=training))
    np.testing.assert_allclose(*labels, rtol=1e-5, atol=1e-5)


def test_it_is_saved(tmp_path):
    model = make_model(0.1)
    tokens = np.arange(N)[None] % V
    expected = model.predict(tokens, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(tokens, verbose=0), expected)
    encoder = loaded.head.label_encoder
    assert encoder.learning_rate_multiplier == 0.1
    assert encoder.label_network.learning_rate_multiplier == 0.1


def test_mixed_precision_steps_the_same():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        ordinary, scaled = make_model(1.0), make_model(0.125)
    finally:
        keras.config.set_dtype_policy(before)
    ordinary = one_step(ordinary, keras.optimizers.SGD(0.1))
    scaled = one_step(scaled, keras.optimizers.SGD(0.1))
    for step, full in zip(scaled, ordinary, strict=True):
        np.testing.assert_allclose(step, 0.125 * full, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("multiplier", [0, -1.0, float("inf"), float("nan")])
def test_other_multipliers_are_refused(multiplier):
    with pytest.raises(ValueError, match=r"`learning_rate_multiplier` must be.*Received: "):
        ResidualNetwork(learning_rate_multiplier=multiplier)
