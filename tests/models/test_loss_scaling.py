"""Training in half precision on batches that nobody would want: no NaN, and steps are taken."""

import keras
import numpy as np
import pytest

import keras_drill
from tests.output_layer.test_numerics import CASES, HEADS, D, H, V

BATCHES = {
    "usual": (np.arange(12).reshape(3, 4), None),
    "of one word": (np.array([[7]]), None),
    "constant": (np.full((3, 4), 5), None),
    "all padding": (np.zeros((3, 4), int), np.zeros((3, 4))),
    "of large weights": (np.arange(12).reshape(3, 4), np.full((3, 4), 1e4)),
    "of small weights": (np.arange(12).reshape(3, 4), np.full((3, 4), 1e-6)),
}


def make_model(name, dtype, scale):
    keras.utils.set_random_seed(5)
    policy = f"mixed_{dtype}"
    backbone = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(V, D, dtype=policy),
            keras.layers.Dense(H, activation="tanh", dtype=policy),
            keras.layers.Rescaling(scale, dtype=policy),
        ]
    )
    return keras_drill.LanguageModel(backbone, HEADS[name](dtype=policy))


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale",
    [3e4, 1e-4, 1.0],
    ids=["huge", "tiny", "usual"],
)
@pytest.mark.parametrize("name, dtype", CASES)
def test_training_stays_finite_whatever_the_batches(name, dtype, scale):
    """A scale that is too large at first falls; the norm is clipped after it is divided out."""
    model = make_model(name, dtype, scale)
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(0.01, global_clipnorm=0.25), initial_scale=2.0**24
    )
    model.compile(optimizer)
    for _ in range(6):
        for batch, (tokens, weights) in BATCHES.items():
            model.reset_metrics()
            loss = model.train_on_batch(tokens, (tokens + 1) % V, sample_weight=weights)
            assert np.isfinite(loss).all(), batch
    before = [np.array(v) for v in model.trainable_variables]
    assert all(np.isfinite(x).all() for x in before)
    tokens, _ = BATCHES["usual"]
    for _ in range(30):  # while the scale falls still
        model.train_on_batch(tokens, (tokens + 1) % V)
        if any(
            np.any(np.array(v) != x) for v, x in zip(model.trainable_variables, before, strict=True)
        ):
            return
    raise AssertionError("no step was taken")


@pytest.mark.parametrize("name", ["drill", "mixture", "kerbs"])
def test_the_norm_of_a_fused_step_is_clipped_like_that_of_any_other(name):
    """A step of SGD has the length of the clipped gradient, and its direction."""
    keras.utils.set_random_seed(5)
    tokens = keras.Input((None,), dtype="int32")
    backbone = keras.Model(tokens, keras.layers.Embedding(V, H)(tokens))
    model = keras_drill.LanguageModel(backbone, HEADS[name]())
    plain = keras.Model(tokens, model.head(backbone(tokens)))
    data = np.arange(12).reshape(3, 4)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    steps = []
    for one, kwargs in ((model, {}), (plain, {"loss": loss})):
        before = [np.array(v) for v in model.trainable_variables]
        one.compile(keras.optimizers.SGD(1.0, global_clipnorm=0.01), **kwargs)
        one.train_on_batch(data, (data + 1) % V)
        now = [np.array(v) for v in model.trainable_variables]
        steps.append(np.concatenate([(a - b).ravel() for a, b in zip(before, now, strict=True)]))
        for variable, value in zip(model.trainable_variables, before, strict=True):
            variable.assign(value)
    assert np.linalg.norm(steps[0]) == pytest.approx(0.01, rel=1e-3)
    np.testing.assert_allclose(*steps, atol=2e-6)
