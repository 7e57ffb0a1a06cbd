"""The neural cache, recomputed word by word in float64."""

import math

import numpy as np
import pytest

from keras_drill.models import add_neural_cache
from keras_drill.models import neural_cache as module

N, D, V = 61, 3, 7
RANDOM = np.random.default_rng(2)
HIDDEN = RANDOM.normal(size=(N, D))
TARGETS = RANDOM.integers(0, V, N)
LOG_PROBS = np.log(RANDOM.uniform(0.01, 0.9, N))


@pytest.mark.parametrize(
    ("size", "theta", "weight"), [(1, 0.3, 0.2), (13, 0.0, 0.5), (29, 2.0, 0.1), (60, 0.7, 0.0)]
)
@pytest.mark.parametrize("rows", [5, 512])
def test_word_by_word(size, theta, weight, rows, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", rows)
    found = add_neural_cache(LOG_PROBS, HIDDEN, TARGETS, size, theta, weight)
    assert found[0] == LOG_PROBS[0]
    for t in range(1, N):
        kept = range(max(t - size, 0), t)
        weights = [math.exp(theta * math.fsum(HIDDEN[t] * HIDDEN[i])) for i in kept]
        same = [w for w, i in zip(weights, kept, strict=True) if TARGETS[i] == TARGETS[t]]
        cached = math.fsum(same) / math.fsum(weights)
        expected = (1 - weight) * math.exp(LOG_PROBS[t]) + weight * cached
        assert found[t] == pytest.approx(math.log(expected), rel=1e-12)


def test_large_similarities_do_not_overflow():
    found = add_neural_cache(LOG_PROBS, 1e3 * HIDDEN, TARGETS, 13, 5.0, 0.3)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": N}, rf"`size` must be .* less than the {N} targets .* Received: size={N}"),
        ({"size": 0}, "`size` must be .* Received: size=0"),
        ({"theta": -1.0}, "`theta` must be .* Received: theta=-1.0"),
        ({"theta": math.inf}, "`theta` must be .* Received: theta=inf"),
        ({"weight": 1.0}, r"`weight` must be in \[0, 1\). Received: weight=1.0"),
        ({"hidden": HIDDEN[:-1]}, rf"`hidden` must be of shape \[{N}, d\]"),
        ({"targets": TARGETS[:-1]}, "`log_probs` and `targets` must be .* Received: log_probs of"),
    ],
)
def test_wrong_arguments(changes, message):
    arguments = {"hidden": HIDDEN, "targets": TARGETS, "size": 5, "theta": 0.3, "weight": 0.1}
    with pytest.raises(ValueError, match=message):
        add_neural_cache(LOG_PROBS, **{**arguments, **changes})
