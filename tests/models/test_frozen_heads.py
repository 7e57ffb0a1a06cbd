"""Models whose output layer is frozen: fitted as if its labels were not passed over once."""

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.fused_loss.inputs import WalkOptions

V, D, B, T = 31, 13, 5, 7
HEADS = {
    "tied": lambda e, **k: keras_drill.OutputLayer(V, embedding=e, **k),
    "capped": lambda e, **k: keras_drill.OutputLayer(V, embedding=e, logit_soft_cap=3.0, **k),
    "drill": lambda e, **k: keras_drill.DrillOutput(V, e, depth=2, dropout=0.3, seed=1, **k),
    "mixture": lambda e, **k: keras_drill.MixtureOfSoftmaxes(V, e, 3, **k),
}


def fitted_weights(head, policy, **options):
    keras.utils.set_random_seed(0)
    embedding = keras.layers.Embedding(V, D, mask_zero=True, trainable=False)
    recurrent = keras.layers.GRU(D, return_sequences=True, dtype=policy)
    head = HEADS[head](embedding, use_bias=False, dtype=policy)
    model = keras_drill.LanguageModel(keras.Sequential([embedding, recurrent]), head)
    model.build((None, T))
    head.trainable = False
    assert head.labels_are_frozen
    model.compile(keras.optimizers.SGD(0.5), metrics=[keras_drill.metrics.Perplexity()], **options)
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(1, V, (2, 2 * B, T)).astype("int32")
    tokens[1, 3:] = 0
    weights = rng.random((2 * B, T)).astype("float32")
    history = model.fit(tokens, targets, B, sample_weight=weights, shuffle=False, verbose=0)
    return [*history.history["perplexity"], *model.get_weights()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "policy", "options"),
    [
        ("tied", "float32", {}),
        ("tied", "float32", {"jit_compile": True}),
        ("tied", "mixed_bfloat16", {}),
        ("capped", "mixed_bfloat16", {"jit_compile": True}),
        ("drill", "float32", {"jit_compile": False}),
        ("mixture", "float32", {"run_eagerly": True}),
    ],
    ids=str,
)
def test_fit(head, policy, options, monkeypatch):
    found = fitted_weights(head, policy, **options)
    asked = []
    monkeypatch.setattr(WalkOptions, "adds_up_at_once", lambda *x: asked.append(x))
    expected = fitted_weights(head, policy, **options)
    assert asked
    tolerance = 2e-6 if policy == "float32" else 5e-3
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
