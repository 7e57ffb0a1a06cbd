import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.output_layer.losses import REDUCTIONS

V, D, B, T = 31, 13, 5, 7


def make_models(mask_zero=False, dtype=None):
    """A plain functional model and a LanguageModel over the same layers."""
    embedding = keras.layers.Embedding(V, D, mask_zero=mask_zero, name="words", dtype=dtype)
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.GRU(D, return_sequences=True, dtype=dtype)(embedding(tokens))
    head = keras_drill.OutputLayer(V, embedding=embedding, tile_size=8, name="head", dtype=dtype)
    plain = keras.Model(tokens, head(hidden))
    return plain, keras_drill.LanguageModel(keras.Model(tokens, hidden), head)


def make_data(seed=0):
    rng = np.random.default_rng(seed)
    tokens, targets = rng.integers(1, V, (2, B, T)).astype("int32")
    weights = rng.random((B, T)).astype("float32")
    weights[2] = 0
    return tokens, targets, weights


def compile_both(plain, fused, optimizer="sgd", **options):
    plain.compile(
        optimizer and keras.optimizers.get(optimizer),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[keras_drill.metrics.Perplexity()],
        **options,
    )
    metrics = [keras_drill.metrics.Perplexity()]
    fused.compile(optimizer and keras.optimizers.get(optimizer), metrics=metrics, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS[:-1])
@pytest.mark.parametrize(
    ("mask_zero", "weighted"),
    [
        (True, True),
        (False, False),
        pytest.param(True, False, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
    ],
)
def test_the_loss_is_that_of_keras(mask_zero, weighted, reduction):
    plain, fused = make_models(mask_zero)
    fused.reduction = reduction
    tokens, targets, weights = make_data()
    tokens[:, T - 2 :] = 0
    tokens[1, 2:] = 0
    weights = weights if weighted else None
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)
    expected = loss(targets, plain(tokens), weights)
    actual = fused.compute_loss(tokens, targets, sample_weight=weights, training=False)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        fused.predict(tokens, verbose=0), plain.predict(tokens, verbose=0), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"run_eagerly": True}], ids=str)
def test_training_takes_the_steps_of_the_plain_model(options):
    if options.get("run_eagerly") and keras.backend.backend() == "jax":
        options = {"jit_compile": False}
    plain, fused = make_models()
    start = plain.get_weights()
    results = []
    compile_both(plain, fused, **options)
    tokens, targets, weights = make_data()
    for model in (plain, fused):
        plain.set_weights(start)
        for _ in range(2):
            model.train_on_batch(tokens, targets, sample_weight=weights)
        results.append(plain.get_weights())
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_gradient_accumulation_is_the_mean_over_batches():
    tokens, targets, _ = make_data()
    results = []
    for steps in (None, 2):
        keras.utils.set_random_seed(0)
        _, model = make_models()
        optimizer = keras.optimizers.SGD(0.1, gradient_accumulation_steps=steps)
        model.compile(optimizer)
        for _ in range(steps or 1):
            model.train_on_batch(tokens, targets)
        results.append(model.get_weights())
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_losses_of_layers_are_added():
    class Penalised(keras.layers.Layer):
        def call(self, x):
            self.add_loss(keras.ops.convert_to_tensor(3.0))
            return x

    embedding = keras.layers.Embedding(V, D)
    backbone = keras.Sequential([embedding, Penalised()])
    model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, embedding))
    model.compile("sgd", metrics=[keras_drill.metrics.Perplexity()])
    tokens, targets, _ = make_data()
    result = model.evaluate(tokens, targets, verbose=0, return_dict=True)
    assert result["loss"] == pytest.approx(3 + np.log(result["perplexity"]), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_fit_under_mixed_precision_learns(policy):
    keras.utils.set_random_seed(0)
    _, model = make_models(dtype=policy)
    optimizer = keras.optimizers.Adam(0.02)
    if policy == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model.compile(optimizer)
    tokens, targets, _ = make_data()
    losses = model.fit(tokens, targets, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.slow
def test_saving_keeps_weights_tying_and_compilation(tmp_path):
    plain, model = make_models()
    compile_both(plain, model, "adam")
    tokens, targets, weights = make_data()
    model.fit(tokens, targets, sample_weight=weights, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(tokens), model(tokens), rtol=1e-5, atol=1e-6)
    assert loaded.count_params() == model.count_params()
    model.reset_metrics()
    a, b = (m.train_on_batch(tokens, targets, return_dict=True) for m in (model, loaded))
    assert a["loss"] == pytest.approx(float(b["loss"]), rel=1e-5)
    np.testing.assert_allclose(loaded(tokens), model(tokens), rtol=1e-4, atol=1e-5)
    assert keras.models.clone_model(model).head.embedding is not model.head.embedding


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="`head` must be a keras_drill"):
        keras_drill.LanguageModel(keras.layers.Embedding(V, D), keras.layers.Dense(V))
    _, model = make_models()
    with pytest.raises(ValueError, match="computes its own loss"):
        model.compile("sgd", loss="mse")
