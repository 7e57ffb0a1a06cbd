"""Output layers over any tokens, weights and allocations, against their definition in float64."""

import functools

import keras
import numpy as np
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp

import keras_drill
from tests.fuzz.damage import clear_errors
from tests.fuzz.fuzzed import fuzzed

V, D, M = 11, 3, 17  # words, width, senses
SCALES = st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 30.0, 1e4])
SEEDS = st.integers(0, 1 << 16)


@functools.cache
def make_head(kind):
    """Made once: what is drawn is assigned to its variables."""
    embedding = keras.layers.Embedding(V, D)
    head = {
        "softmax": lambda: keras_drill.SoftmaxOutput(V),
        "tied": lambda: keras_drill.TiedOutput(V, embedding),
        "bilinear": lambda: keras_drill.BilinearOutput(V, embedding_dim=5),
        "dual": lambda: keras_drill.DualNonlinearOutput(V, embedding_dim=5, units=2),
        "drill": lambda: keras_drill.DrillOutput(V, embedding, depth=2, activation="tanh"),
        "mixture": lambda: keras_drill.MixtureOfSoftmaxes(V, embedding_dim=5, num_mixtures=2),
        "kerbs": lambda: keras_drill.KernelizedBayesianSoftmax(V, num_senses=M),
    }[kind]()
    head.build((None, None, D))
    return head


KINDS = ("softmax", "tied", "bilinear", "dual", "drill", "mixture", "kerbs")


@fuzzed(
    15,
    kind=st.sampled_from(KINDS),
    shape=st.sampled_from([(0,), (1,), (7,), (2, 3)]),
    scales=st.tuples(SCALES, SCALES),
    dtype=st.sampled_from(["float32", "float16", "bfloat16", "float64"]),
    kind_of_weights=st.sampled_from(["none", "zeros", "some", "negative", "large"]),
    smoothing=st.sampled_from([0.0, 0.1]),
    seed=SEEDS,
)
def test_losses(folder, kind, shape, scales, dtype, kind_of_weights, smoothing, seed):
    rng = np.random.default_rng(seed)
    head = make_head(kind)
    for variable in head.trainable_variables:
        variable.assign(rng.normal(size=variable.shape) * scales[1])
    hidden = keras.ops.cast(rng.normal(size=(*shape, D)) * scales[0], dtype)
    targets = rng.integers(0, V, shape)
    weights = {
        "none": None,
        "zeros": np.zeros(shape),
        "some": rng.random(shape) * (rng.random(shape) < 0.6),
        "negative": -rng.random(shape),
        "large": 1e20 * rng.random(shape),
    }[kind_of_weights]
    log_probs = np.asarray(head(hidden), "float64")
    assert log_probs.shape == (*shape, V) and not np.isnan(log_probs).any()
    np.testing.assert_allclose(logsumexp(log_probs, -1), 0, atol=1e-5)
    losses = -(1 - smoothing) * np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
    if smoothing:  # 0 times an infinite loss is none
        losses = losses - smoothing * log_probs.mean(-1)
    factors = 1 if weights is None else np.where(weights == 0, 0, weights)
    weighted = factors * np.where(factors == 0, 0, losses)  # nothing of infinite losses too
    found = float(head.loss(hidden, targets, weights, smoothing, reduction="sum"))
    with np.errstate(over="ignore"):  # sums that float32 cannot hold
        expected, size = np.sum(weighted, dtype="float32"), np.sum(np.abs(weighted))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * size + 1e-4)


@fuzzed(
    15,
    words=st.lists(st.integers(-1, V), min_size=M, max_size=M)
    | st.permutations([*range(V), 0, 0, 1, 2, 3, 3]),
    seed=SEEDS,
)
def test_allocations(folder, words, seed):
    """The probability of a word is the sum of its senses', whichever they are."""
    rng = np.random.default_rng(seed)
    head = make_head("kerbs")
    counts = np.bincount(np.clip(words, 0, V - 1), minlength=V)
    is_good = min(words) >= 0 and max(words) < V and counts.min() >= 1 and counts.max() <= 4
    with clear_errors(ValueError):
        head.allocation.assign(words)
        assert is_good
        for variable in head.trainable_variables:
            variable.assign(rng.normal(size=variable.shape))
        hidden = rng.normal(size=(7, D))
        senses = log_softmax(kernel(hidden, head), -1)
        expected = np.stack([logsumexp(senses[:, np.equal(words, w)], -1) for w in range(V)], -1)
        np.testing.assert_allclose(head(hidden), expected, rtol=1e-3, atol=1e-4)
        return
    assert not is_good


def kernel(hidden, head):
    """Scores of hidden states and senses, `[N, M]`, as the paper has them."""
    labels, theta = (np.asarray(x, "float64") for x in (head.embeddings, head.score_parameters[0]))
    norms = np.linalg.norm(hidden, axis=-1)[:, None] * np.linalg.norm(labels, axis=-1)
    cosine = hidden @ labels.T / norms
    a = -theta / (2 * (np.exp(-theta) + theta - 1))
    scores = norms * (a * np.exp(-theta * cosine) - a)
    return scores if head.bias is None else scores + np.asarray(head.bias)


@fuzzed(
    20,
    shape=st.sampled_from([(), (2,), (2, 3), (3, 2)]),
    width=st.sampled_from([D, D + 1, 0]),
    target_shape=st.sampled_from([(), (2,), (2, 3)]),
    weight_shape=st.sampled_from([None, (), (2,), (2, 3), (1, 3), (2, 1), (3,)]),
    target=st.sampled_from([0, V - 1, V, -1, -100, 1 << 40]),
    smoothing=st.sampled_from([0.0, 1.0, -0.1, float("nan")]),
    reduction=st.sampled_from(["sum", "mean", "none", None, "max"]),
)
def test_arguments(folder, shape, width, target_shape, weight_shape, target, smoothing, reduction):
    """What does not fit together is refused; what does has a loss."""
    head = make_head("tied")
    hidden = np.ones((*shape, width), "float32")
    targets = np.full(target_shape, target)
    weights = None if weight_shape is None else np.ones(weight_shape, "float32")
    with clear_errors(ValueError):
        loss = head.loss(hidden, targets, weights, smoothing, reduction=reduction)
        fits = shape == target_shape and width == D and 0 <= smoothing < 1
        assert fits and reduction != "max"
        assert np.isfinite(np.asarray(loss)).all() == (0 <= target < V)
