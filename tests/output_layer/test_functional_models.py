"""The fused loss inside functional models with several outputs, by `head(hidden, targets=...)`."""

import keras
import numpy as np
import pytest

import keras_drill

V, D, B, T = 31, 13, 6, 7

HEADS = {
    "tied": keras_drill.TiedOutput,
    "drill": lambda *a, **k: keras_drill.DrillOutput(*a, depth=1, **k),
    "mixture": lambda *a, **k: keras_drill.MixtureOfSoftmaxes(*a, num_mixtures=2, **k),
    "kerbs": lambda v, e, **k: keras_drill.KernelizedBayesianSoftmax(v, num_senses=67, **k),
}


def data(seed=0):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, V, (B, T)).astype("int32")
    tokens[0, 4:] = 0
    tokens[3, 1:] = 0
    return {
        "tokens": tokens,
        "targets": rng.integers(0, V, (B, T)).astype("int32"),
        "weights": rng.random((B, T)).astype("float32"),
    }, rng.integers(0, 3, B)


def make_model(head, mask_zero=True, **call_options):
    """A tagger and a language model over one backbone, and the language model alone."""
    keras.utils.clear_session()  # the same paths each time
    keras.utils.set_random_seed(3)
    inputs = {
        "tokens": keras.Input((T,), dtype="int32", name="tokens"),
        "targets": keras.Input((T,), dtype="int32", name="targets"),
        "weights": keras.Input((T,), name="weights"),
    }
    embedding = keras.layers.Embedding(V, D, mask_zero=mask_zero, name="words")
    hidden = keras.layers.LSTM(D, return_sequences=True, name="lstm")(embedding(inputs["tokens"]))
    tag = keras.layers.Dense(3, name="tag")(keras.layers.GlobalAveragePooling1D()(hidden))
    head = HEADS[head](V, embedding, name="head")
    log_prob = head(
        hidden, targets=inputs["targets"], sample_weight=inputs["weights"], **call_options
    )
    model = keras.Model(inputs, {"tag": tag, "head": log_prob})
    model.compile(
        keras.optimizers.SGD(0.5),
        loss={"tag": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
    )
    return model, keras.Model(inputs["tokens"], head(hidden))


@pytest.mark.slow
@pytest.mark.parametrize(
    "head, mask_zero",
    [
        *((head, True) for head in ("tied", "kerbs", "drill", "mixture")),
        ("tied", False),
    ],
)
def test_the_loss_is_that_of_keras_and_gradients_are_its_gradients(head, mask_zero):
    model, words = make_model(head, mask_zero)
    x, y = data()
    log_probs = np.asarray(words(x["tokens"]))
    chosen = np.take_along_axis(log_probs, x["targets"][..., None], -1)[..., 0]
    counted = x["tokens"] != 0 if mask_zero else np.ones((B, T), bool)
    expected = -(x["weights"] * chosen)[counted].mean()
    tag = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    expected += float(tag(y, model(x)["tag"]))
    assert model.evaluate(x, {"tag": y}, verbose=0) == pytest.approx(expected, rel=1e-5)

    plain, _ = make_model(head, mask_zero)  # the same weights, and Keras' own loss
    plain = keras.Model(
        plain.input["tokens"],
        [plain.get_layer("tag").output, plain.get_layer("head")(plain.get_layer("lstm").output)],
    )
    plain.compile(
        keras.optimizers.SGD(0.5),
        [keras.losses.SparseCategoricalCrossentropy(from_logits=True)] * 2,
    )
    plain.train_on_batch(x["tokens"], [y, x["targets"]], sample_weight=[np.ones(B), x["weights"]])
    model.train_on_batch(x, {"tag": y})
    expected = {v.path: np.asarray(v) for v in plain.trainable_variables}
    assert set(expected) == {v.path for v in model.trainable_variables}
    for v in model.trainable_variables:
        np.testing.assert_allclose(v, expected[v.path], rtol=1e-4, atol=1e-5, err_msg=v.path)


@pytest.mark.slow
def test_fit_save_and_load(tmp_path):
    model, words = make_model("drill", label_smoothing=0.1)
    x, y = data()
    model.optimizer.learning_rate = 0.1
    history = model.fit(x, {"tag": y}, epochs=5, batch_size=B, verbose=0).history["loss"]
    assert history[-1] < history[0]
    before = model.evaluate(x, {"tag": y}, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("head").embedding is loaded.get_layer("words")
    assert loaded.evaluate(x, {"tag": y}, verbose=0) == pytest.approx(before, rel=1e-5)
    predicted = model.predict(x, verbose=0)
    np.testing.assert_allclose(loaded.predict(x, verbose=0)["head"], predicted["head"], rtol=1e-4)
    log_probs = words.predict(x["tokens"], verbose=0)  # the same head, for inference
    chosen = np.take_along_axis(log_probs, x["targets"][..., None], -1)[..., 0]
    counted = x["tokens"] != 0
    np.testing.assert_allclose(predicted["head"][counted], chosen[counted], rtol=1e-4)
    assert loaded.fit(x, {"tag": y}, verbose=0).history["loss"][0] < history[0]


@pytest.mark.slow
def test_two_heads_in_one_model():
    x = keras.Input((T,), dtype="int32", name="tokens")
    targets = [keras.Input((T,), dtype="int32", name=name) for name in ("next", "previous")]
    embedding = keras.layers.Embedding(V, D)
    hidden = embedding(x)
    heads = [keras_drill.TiedOutput(V, embedding), keras_drill.SoftmaxOutput(V)]
    outputs = [head(hidden, targets=y) for head, y in zip(heads, targets, strict=True)]
    model = keras.Model([x, *targets], outputs)
    model.compile("sgd")
    batch, _ = data()
    values = [batch["tokens"], batch["targets"], batch["targets"][:, ::-1]]
    expected = sum(
        float(head.loss(embedding(values[0]), y, training=False))
        for head, y in zip(heads, values[1:], strict=True)
    )
    assert model.evaluate(values, verbose=0) == pytest.approx(expected, rel=1e-5)
    assert model.fit(values, epochs=3, verbose=0).history["loss"][-1] < expected
