"""Heads that are put on trained models: the same probabilities, and gradients that wake."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill import (
    BilinearOutput,
    DrillOutput,
    DualNonlinearOutput,
    KernelizedBayesianSoftmax,
    LanguageModel,
    MixtureOfSoftmaxes,
    OutputLayer,
)
from tests.gradients import value_and_gradients

V, D, B, T = 31, 13, 3, 7
TOKENS = np.random.default_rng(0).integers(0, V, (B, T + 1))


def trained_model(is_tied=True, use_bias=True, **options):
    keras.utils.set_random_seed(3)
    embedding = keras.layers.Embedding(V, D, name="words")
    inputs = keras.Input((None,), dtype="int32")
    hidden = keras.layers.LSTM(D, return_sequences=True)(embedding(inputs))
    head = OutputLayer(V, embedding if is_tied else None, use_bias=use_bias, **options)
    model = LanguageModel(keras.Model(inputs, hidden), head)
    random = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign(random.normal(size=weight.shape, scale=0.7))
    return model


def mixture(embedding, **options):
    return MixtureOfSoftmaxes(V, embedding, num_mixtures=3, gated=True, **options)


def kerbs(embedding, **options):
    return KernelizedBayesianSoftmax(V, num_senses=2 * V + 5, use_bias=True, **options)


HEADS = {
    "bias": lambda embedding, **options: OutputLayer(V, embedding, **options),
    "drill": lambda embedding, **options: DrillOutput(V, embedding, 2, gated=True, **options),
    "deep": lambda embedding, **options: DrillOutput(
        V, embedding, 1, activation="tanh", gated=True, dropout=0.3, **options
    ),
    "bilinear": lambda embedding, **options: BilinearOutput(
        V, embedding, kernel_initializer="identity", **options
    ),
    "mixture": mixture,
    "kerbs": kerbs,
    "senses without a kernel": lambda embedding, **options: kerbs(
        embedding, variant="inner_product", **options
    ),
    "even senses": lambda embedding, **options: KernelizedBayesianSoftmax(
        V, num_senses=3 * V, use_bias=True, **options
    ),
}


def log_probs_of(model):
    return np.asarray(model(TOKENS[:, :-1]))


@pytest.mark.parametrize(
    ("name", "is_tied"),
    [
        *((name, True) for name in HEADS),
        ("drill", False),
        ("kerbs", False),
        *(
            pytest.param(name, False, marks=pytest.mark.slow)
            for name in HEADS
            if name not in ("drill", "kerbs")
        ),
    ],
)
def test_probabilities_stay_and_gradients_wake(name, is_tied):
    model = trained_model(is_tied)
    before = log_probs_of(model)
    assert before.std() > 0.5
    new = model.with_head(HEADS[name](model.head.embedding))
    np.testing.assert_allclose(log_probs_of(new), before, atol=1e-5)
    np.testing.assert_allclose(log_probs_of(model), before, atol=1e-6)
    assert new.backbone is model.backbone

    def loss():
        return new.compute_loss(TOKENS[:, :-1], TOKENS[:, 1:])

    new.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    own = [w for w in new.head.trainable_weights if w.name not in ("bias", "embeddings")]
    start = [np.asarray(w) for w in own]
    losses = [float(new.train_on_batch(TOKENS[:, :-1], TOKENS[:, 1:])) for _ in range(4)]
    assert losses[-1] < losses[0]
    assert (
        losses[0]
        == pytest.approx(-np.take_along_axis(before, TOKENS[:, 1:, None], -1).mean(), rel=1e-4)
        or name == "deep"
    )  # whose dropout has no part in it either, while gates are 0
    for weight, at_first in zip(own, start, strict=True):
        assert (np.asarray(weight) != at_first).any(), weight.path


@pytest.mark.slow
def test_senses_part():
    model = trained_model()
    new = model.with_head(HEADS["even senses"](None))
    words = np.asarray(new.head.allocation.sense_to_word)
    labels = np.asarray(new.head.label_embeddings)
    of_words = np.asarray(model.head.embeddings)[words]
    apart = abs(labels - of_words).max(1)
    assert apart.min() > 0 and apart.max() < 0.01 * abs(of_words).max()
    sums = np.zeros((V, D))
    np.add.at(sums, words, labels - of_words)
    np.testing.assert_allclose(sums, 0, atol=1e-6)
    at_first = np.linalg.norm(labels[:V] - labels[V : 2 * V], axis=1)
    new.compile(keras.optimizers.Adam(0.02), run_eagerly=True)
    for _ in range(25):
        new.train_on_batch(TOKENS[:, :-1], TOKENS[:, 1:])
    labels = np.asarray(new.head.label_embeddings)
    later = np.linalg.norm(labels[:V] - labels[V : 2 * V], axis=1)
    assert (later / at_first).max() > 2


@pytest.mark.parametrize("name", ["drill", "mixture", "kerbs"])
def test_saved_and_loaded(name, tmp_path):
    model = trained_model()
    new = model.with_head(HEADS[name](model.head.embedding))
    new.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(log_probs_of(loaded), log_probs_of(model), atol=1e-5)


def test_soft_caps_and_label_smoothing_are_kept():
    model = trained_model(use_bias=False, logit_soft_cap=2.0)
    model.label_smoothing = 0.1
    before = log_probs_of(model)
    for name in ("drill", "mixture", "even senses"):
        new = model.with_head(HEADS[name](model.head.embedding, logit_soft_cap=2.0))
        np.testing.assert_allclose(log_probs_of(new), before, atol=1e-5)
        assert new.label_smoothing == 0.1
    with pytest.raises(ValueError, match=r"senses and a soft cap.*Received"):
        model.with_head(HEADS["kerbs"](None, logit_soft_cap=2.0))
    with pytest.raises(ValueError, match=r"`logit_soft_cap` of the new head.*Received"):
        model.with_head(HEADS["drill"](model.head.embedding))


def test_a_second_head_begins_from_the_labels_of_the_first():
    model = trained_model()
    drill = model.with_head(HEADS["drill"](model.head.embedding))
    for gate in drill.head.label_encoder.label_network.gates:
        gate.assign(np.full(gate.shape, 0.3))
    before = log_probs_of(drill)
    assert abs(before - log_probs_of(model)).max() > 0.1
    new = drill.with_head(HEADS["mixture"](None))
    np.testing.assert_allclose(log_probs_of(new), before, atol=1e-5)


def test_only_what_is_new_learns_on_a_frozen_backbone():
    model = trained_model()
    model.backbone.trainable = False
    new = model.with_head(HEADS["drill"](model.head.embedding))
    kept = [np.asarray(w) for w in model.backbone.weights]
    _, gradients = value_and_gradients(
        lambda: new.compute_loss(TOKENS[:, :-1], TOKENS[:, 1:]), new.trainable_weights
    )
    assert len(gradients) == 7 and any(abs(g).max() > 0 for g in gradients)
    new.compile("adam", run_eagerly=True)
    new.train_on_batch(TOKENS[:, :-1], TOKENS[:, 1:])
    for weight, value in zip(model.backbone.weights, kept, strict=True):
        np.testing.assert_array_equal(weight, value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda e: DrillOutput(V, e, 2), r"must initially give the same probabilities.*differ by"),
        (lambda e: MixtureOfSoftmaxes(V, e, 3), r"must initially give the same probabilities"),
        (
            lambda e: DualNonlinearOutput(V, e, units=D),
            r"must initially give the same probabilities",
        ),
        (lambda e: OutputLayer(V, e, use_bias=False), r"`use_bias` of the new head must be True"),
        (
            lambda e: KernelizedBayesianSoftmax(V, num_senses=V + 5),
            r"`use_bias` of the new head must be True",
        ),
        (lambda e: OutputLayer(V + 1), r"`vocabulary_size` of the new head"),
        (lambda e: OutputLayer(V, keras.layers.Embedding(V, D)), r"`embedding` of the new head"),
        (lambda e: OutputLayer(V, embedding_dim=D + 1, label_encoder=None), "Received"),
    ],
    ids=[
        "drill-without-a-gate",
        "mixture",
        "dual",
        "no-bias",
        "senses-without-bias",
        "vocabulary",
        "other-embedding",
        "width",
    ],
)
def test_what_is_refused(make, message):
    model = trained_model()
    with pytest.raises(ValueError, match=f"(?s){message}.*"):
        model.with_head(make(model.head.embedding))


def test_heads_that_are_used_already_are_refused():
    model = trained_model()
    with pytest.raises(ValueError, match=r"`head` must be new.*Received"):
        model.with_head(model.head)
    kerbs = model.with_head(HEADS["kerbs"](None))
    with pytest.raises(ValueError, match=r"must be a single softmax over inner products.*Received"):
        kerbs.with_head(OutputLayer(V))
    assert ops.shape(kerbs.predict(TOKENS[:, :-1], verbose=0)) == (B, T, V)
