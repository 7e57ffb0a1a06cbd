"""Loss and metrics of whole epochs, against sums in NumPy over the predicted probabilities."""

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.metrics import Perplexity

V, D, B, T = 31, 13, 5, 7


def make_model(mask_zero, **options):
    keras.utils.set_random_seed(3)
    embedding = keras.layers.Embedding(V, D, mask_zero=mask_zero)
    backbone = keras.Sequential([embedding, keras.layers.GRU(D, return_sequences=True)])
    head = keras_drill.OutputLayer(V, embedding=embedding, z_loss=options.pop("z_loss", 0.0))
    model = keras_drill.LanguageModel(backbone, head, **options)
    model.compile("sgd", metrics=[Perplexity()])
    model(np.ones((1, T), "int32"))
    # Words of very different probability, so that it matters which tokens count.
    embedding.embeddings.assign(np.random.default_rng(1).normal(0, 2, (V, D)))
    return model


def make_data():
    """Padded unevenly: batches of 2 have 11, 4 and 1 tokens."""
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(1, V, (2, B, T)).astype("int32")
    for row, length in enumerate((7, 4, 1, 3, 1)):
        tokens[row, length:] = 0
    weights = rng.random((B, T)).astype("float32")
    weights[2] = 0
    return tokens, targets, weights


def losses_of(model, tokens, targets):
    log_probs = model.predict(tokens, verbose=0)
    return -np.take_along_axis(log_probs, targets[..., None], -1)[..., 0], log_probs


@pytest.mark.parametrize(
    "weighted", ["tokens", None, pytest.param("sequences", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("mask_zero", [True, False])
def test_loss_and_perplexity_are_means_over_the_tokens_that_count(mask_zero, weighted):
    model = make_model(mask_zero)
    tokens, targets, weights = make_data()
    weights = {"tokens": weights, "sequences": weights[:, 0] + 0.1, None: None}[weighted]
    losses, _ = losses_of(model, tokens, targets)
    counted = (tokens > 0) if mask_zero else np.ones((B, T))
    if weights is not None:
        counted = counted * (weights if weights.ndim == 2 else weights[:, None])
    expected = (counted * losses).sum() / counted.sum()
    assert abs(expected - losses.mean()) > 0.01 or not (mask_zero or weighted)
    found = model.evaluate(tokens, targets, 2, sample_weight=weights, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    assert found["perplexity"] == pytest.approx(np.exp(expected), rel=1e-4)


@pytest.mark.slow
def test_the_loss_has_smoothing_and_what_layers_add_and_perplexity_has_not():
    model = make_model(True, label_smoothing=0.3)
    model.head.z_loss = 0.1
    tokens, targets, weights = make_data()
    losses, log_probs = losses_of(model, tokens, targets)
    counted = (tokens > 0) * weights
    smoothed = 0.7 * losses - 0.3 * log_probs.mean(-1)
    scores = keras.ops.convert_to_numpy(
        model.backbone(tokens) @ keras.ops.transpose(model.head.embeddings)
    )
    smoothed += 0.1 * np.log(np.exp(scores).sum(-1)) ** 2
    found = model.evaluate(tokens, targets, 2, sample_weight=weights, verbose=0, return_dict=True)
    expected = (counted * smoothed).sum() / counted.sum()
    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    expected = (counted * losses).sum() / counted.sum()
    assert found["perplexity"] == pytest.approx(np.exp(expected), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reduction",
    [
        "mean",
        "mean_with_sample_weight",
        "sum",
    ],
)
def test_any_reduction_is_reported_as_the_mean(reduction):
    tokens, targets, weights = make_data()
    found = []
    for model in (make_model(True), make_model(True, reduction=reduction)):
        found.append(model.evaluate(tokens, targets, 2, sample_weight=weights, verbose=0))
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.slow
def test_history_reports_validation_over_tokens(tmp_path):
    model = make_model(True)
    tokens, targets, _ = make_data()
    log = keras.callbacks.CSVLogger(tmp_path / "history.csv")
    history = model.fit(
        tokens, targets, 2, epochs=2, verbose=0, validation_data=(tokens, targets), callbacks=[log]
    ).history
    np.testing.assert_allclose(history["val_loss"], np.log(history["val_perplexity"]), rtol=1e-5)
    np.testing.assert_allclose(history["loss"], np.log(history["perplexity"]), rtol=1e-5)
    header = (tmp_path / "history.csv").read_text().splitlines()[0]
    assert header == "epoch,loss,perplexity,val_loss,val_perplexity"


def test_no_token_counts():
    model = make_model(True)
    tokens, targets, _ = make_data()
    found = model.evaluate(0 * tokens, targets, verbose=0, return_dict=True)
    assert found == {"loss": 0.0, "perplexity": 1.0}


@pytest.mark.slow
def test_callbacks_know_that_less_perplexity_is_better(tmp_path):
    model = make_model(False)
    tokens, targets, _ = make_data()
    callbacks = [
        keras.callbacks.EarlyStopping("val_perplexity", patience=0),
        keras.callbacks.ReduceLROnPlateau("val_perplexity", patience=1),
        keras.callbacks.ModelCheckpoint(
            tmp_path / "best.weights.h5",
            "val_perplexity",
            save_best_only=True,
            save_weights_only=True,
        ),
    ]
    history = model.fit(
        tokens, targets, epochs=3, verbose=0, validation_data=(tokens, targets), callbacks=callbacks
    ).history["val_perplexity"]
    assert len(history) == 3 and history == sorted(history, reverse=True)
    for callback in callbacks:
        assert callback.best == pytest.approx(history[-1])
