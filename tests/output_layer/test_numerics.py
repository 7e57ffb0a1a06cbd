"""Losses and gradients of half precision on batches that nobody would want, against float64."""

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.analysis.float64_head import float64_head
from tests.gradients import value_and_gradients

V, D, H, N = 31, 13, 11, 7
HEADS = {
    "softmax": lambda **k: keras_drill.SoftmaxOutput(V, **k),
    "tied": lambda **k: keras_drill.TiedOutput(V, keras.layers.Embedding(V, H, **k), **k),
    "bilinear": lambda **k: keras_drill.BilinearOutput(V, embedding_dim=D, **k),
    "dual": lambda **k: keras_drill.DualNonlinearOutput(V, embedding_dim=D, units=5, **k),
    "drill": lambda **k: keras_drill.DrillOutput(V, depth=2, activation="relu", **k),
    "mixture": lambda **k: keras_drill.MixtureOfSoftmaxes(V, embedding_dim=D, num_mixtures=3, **k),
    "kerbs": lambda **k: keras_drill.KernelizedBayesianSoftmax(V, num_senses=67, **k),
    "reference": lambda **k: keras_drill.KernelizedBayesianSoftmax(
        V, num_senses=67, variant="reference", **k
    ),
}
# Errors that rounding explains: relative ones of losses and of the largest gradients, and of what
# is so small that loss scaling is for it.
ERRORS = {"float16": (2e-3, 0.03, 1e-6), "bfloat16": (2e-2, 0.2, 1e-9)}
QUICK = (("drill", "float16"), ("kerbs", "bfloat16"))
CASES = [
    pytest.param(name, dtype, marks=() if (name, dtype) in QUICK else pytest.mark.slow)
    for name in HEADS
    for dtype in ERRORS
]


def make_head(name, dtype, scale):
    keras.utils.set_random_seed(3)
    head = HEADS[name](dtype=f"mixed_{dtype}")
    head.build((None, H))
    for i, variable in enumerate(head.trainable_variables):
        values = np.random.default_rng(i).normal(size=variable.shape) * scale
        variable.assign(values.astype("bfloat16").astype("float32"))
    return head


def batches():
    """Hidden states, targets and weights, by name."""
    rng = np.random.default_rng(5)
    normal, targets, ones = rng.normal(size=(N, H)), rng.integers(0, V, N), np.ones(N)
    for scale in (1e-30, 1e-6, 1, 30):
        yield f"scaled by {scale:g}", normal * scale, targets, ones
    mixed = normal * np.resize([100, 1e-5], N)[:, None]
    yield "of unlike norms", mixed, targets, ones
    yield "constant", np.ones((N, H)), np.zeros(N, int), ones
    yield "zeros", np.zeros((N, H)), targets, ones
    yield "of one word", normal[:1], targets[:1], ones[:1]
    yield "all padding", normal, targets, 0 * ones
    yield "of almost no weight", normal, targets, 1e-6 * ones


def loss_and_gradients(head, hidden, targets, weights, scale=1.0):
    dtype = "float64" if head.compute_dtype == "float64" else "float32"
    loss, gradients, d_hidden = value_and_gradients(
        lambda x: scale * head.loss(x, targets, weights.astype(dtype)),
        head.trainable_variables,
        hidden.astype(dtype),
    )
    return loss, [*gradients, d_hidden]


@pytest.mark.parametrize("name, dtype", CASES)
def test_batches_of_all_kinds(name, dtype):
    head = make_head(name, dtype, 0.3)
    oracle = float64_head(head)
    of_loss, of_gradients, of_zero = ERRORS[dtype]
    for batch, hidden, *rest in batches():
        hidden = np.asarray(keras.ops.cast(keras.ops.cast(hidden, dtype), "float32"))
        loss, gradients = loss_and_gradients(head, hidden, *rest)
        expected, exact = loss_and_gradients(oracle, hidden, *rest)
        np.testing.assert_allclose(loss, expected, rtol=of_loss, atol=1e-6, err_msg=batch)
        largest = max(np.abs(x).max() for x in exact)
        for found, wanted in zip(gradients, exact, strict=True):
            assert np.isfinite(found).all(), batch
            np.testing.assert_allclose(
                found, wanted, rtol=0, atol=of_gradients * largest + of_zero, err_msg=batch
            )


@pytest.mark.parametrize("name, dtype", CASES)
def test_scores_that_float16_cannot_hold_have_a_loss_and_gradients(name, dtype):
    """Loss scaling mends what is too large in gradients, and nothing else."""
    head = make_head(name, dtype, 1.0)
    for variable in head.trainable_variables:
        if "embeddings" in variable.name:
            variable.assign(100 * variable)
    hidden = np.random.default_rng(5).normal(size=(N, H)) * 1000
    loss, gradients = loss_and_gradients(head, hidden, np.arange(N), np.ones(N), scale=2.0**-20)
    assert np.isfinite(loss) and all(np.isfinite(x).all() for x in gradients)
    assert any(np.any(x) for x in gradients)  # which lead back
    log_probs = np.asarray(head(hidden.astype("float32")))
    assert not np.isnan(log_probs).any()
