"""The learning rate of a label encoder, as a multiple of the optimizer's."""

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


def glorot():
    return keras.initializers.GlorotUniform(seed=5)


ENCODERS = {
    "residual": lambda c: keras_drill.ResidualLabelEncoder(
        depth=2, kernel_initializer=glorot(), learning_rate_multiplier=c
    ),
    "bilinear": lambda c: keras_drill.BilinearLabelEncoder(glorot(), learning_rate_multiplier=c),
    "dual": lambda c: keras_drill.DualNonlinearLabelEncoder(
        7, kernel_initializer=glorot(), learning_rate_multiplier=c
    ),
}


def make_model(multiplier, kind="residual"):
    embedding = keras.layers.Embedding(
        V, D, embeddings_initializer=keras.initializers.RandomUniform(-1, 1, seed=3)
    )
    encoder = ENCODERS[kind](multiplier)
    head = keras_drill.OutputLayer(V, embedding=embedding, label_encoder=encoder)
    tokens = keras.Input((None,), dtype="int32")
    return keras_drill.LanguageModel(keras.Model(tokens, embedding(tokens)), head)


def effective(model):
    """The values of the label encoder's weights, as its products use them."""
    encoder = model.head.label_encoder
    scale = encoder.learning_rate_multiplier
    return [scale * np.asarray(w) for w in encoder.trainable_weights]


def one_step(model, optimizer):
    rng = np.random.default_rng(7)
    tokens, targets = rng.integers(0, V, (2, 5, N))
    model.compile(optimizer)
    before = effective(model)
    model.train_on_batch(tokens, targets)
    return [new - old for new, old in zip(effective(model), before, strict=True)]


@pytest.mark.parametrize(
    "optimizer, kind",
    [
        *((optimizer, "residual") for optimizer in ("clipped", "adam", "adamw")),
        *(("adam", kind) for kind in ENCODERS if kind != "residual"),
        *(
            pytest.param(optimizer, "residual", marks=pytest.mark.slow)
            for optimizer in ("sgd", "momentum", "lion")
        ),
    ],
)
def test_the_first_step_is_the_multiple_of_an_ordinary_one(optimizer, kind):
    c = 0.1
    ordinary = one_step(make_model(1.0, kind), OPTIMIZERS[optimizer]())
    scaled = one_step(make_model(c, kind), OPTIMIZERS[optimizer]())
    decay = 0.01 * 0.1 if optimizer == "adamw" else 0.0
    initial = effective(make_model(1.0, kind))
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


@pytest.mark.parametrize("kind", ENCODERS)
def test_the_probabilities_are_those_of_an_ordinary_encoder(kind):
    tokens = np.arange(N)[None] % V
    expected = make_model(1.0, kind).predict(tokens, verbose=0)
    scaled = make_model(0.01, kind)
    np.testing.assert_allclose(scaled.predict(tokens, verbose=0), expected, rtol=1e-5, atol=1e-5)
    folded = scaled.head.folded()(scaled.backbone(tokens))
    np.testing.assert_allclose(folded, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ENCODERS)
def test_it_is_saved(kind, tmp_path):
    model = make_model(0.1, kind)
    tokens = np.arange(N)[None] % V
    expected = model.predict(tokens, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(tokens, verbose=0), expected)
    encoder = loaded.head.label_encoder
    assert encoder.learning_rate_multiplier == 0.1
    for network in (encoder.label_network, encoder.hidden_network):
        assert network is None or network.learning_rate_multiplier == 0.1


@pytest.mark.parametrize("kind", ["bilinear", "dual"])
def test_a_folded_head_is_saved_with_its_hidden_network(kind, tmp_path):
    model = make_model(0.1, kind)
    hidden = np.random.default_rng(3).normal(size=(N, D)).astype("float32")
    x = keras.Input((D,))
    folded = keras.Model(x, model.head.folded()(x))
    folded.save(tmp_path / "folded.keras")
    loaded = keras.saving.load_model(tmp_path / "folded.keras")
    np.testing.assert_allclose(loaded(hidden), model.head(hidden), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ENCODERS)
def test_quantizing_a_model_leaves_the_label_encoder(kind):
    model = make_model(0.1, kind)
    before = effective(model)
    model.quantize("int8")
    after = effective(model)
    assert before
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("kind", ENCODERS)
def test_mixed_precision_steps_the_same(kind):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        ordinary, scaled = make_model(1.0, kind), make_model(0.125, kind)
    finally:
        keras.config.set_dtype_policy(before)
    ordinary = one_step(ordinary, keras.optimizers.SGD(0.1))
    scaled = one_step(scaled, keras.optimizers.SGD(0.1))
    for step, full in zip(scaled, ordinary, strict=True):
        np.testing.assert_allclose(step, 0.125 * full, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("multiplier", [0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", ENCODERS)
def test_other_multipliers_are_refused(kind, multiplier):
    with pytest.raises(ValueError, match=r"`learning_rate_multiplier` must be.*Received: "):
        ENCODERS[kind](multiplier)
