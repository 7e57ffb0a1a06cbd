"""Attention to a source: each score and window against NumPy in float64, masks, and gradients."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.layers import (
    AdditiveScore,
    Attention,
    DotScore,
    GeneralScore,
    MonotonicWindow,
    MultiHeadSourceAttention,
    PredictiveWindow,
)
from tests.gradients import value_and_gradients

B, T, S, DQ, DM, A, RADIUS = 3, 5, 11, 7, 13, 2, 2
LENGTHS = np.array([11, 4, 0])
PARTS = ("bias", "kernel")
MASK = np.arange(S)[None] < LENGTHS[:, None]


def scores_of(score, query, memory):
    """Scores `[T, S]` of one sequence in float64."""
    query, memory = query.astype("float64"), memory.astype("float64")
    w = {v.name: np.asarray(v, "float64") for v in score.weights}
    if isinstance(score, DotScore):
        return query @ memory.T / (np.sqrt(query.shape[1]) if score.scaled else 1)
    if isinstance(score, GeneralScore):
        return w.get("scale", 1) * query @ (memory @ w["memory_kernel"]).T
    found = np.empty((len(query), len(memory)))
    v = w["v"] * (w["g"] / np.linalg.norm(w["v"]) if score.normalized else 1)
    for t, s in np.ndindex(found.shape):
        inner = query[t] @ w["query_kernel"] + memory[s] @ w["memory_kernel"] + w.get("bias", 0)
        x = np.tanh(inner)
        for layer in range(1, score.num_layers):
            x = np.tanh(x @ w[f"kernel_{layer}"] + w[f"bias_{layer}"])
        found[t, s] = v @ x
    return found


def window_of(window, query, length):
    """What is seen `[T, S]`, and factors, of one sequence in float64."""
    seen, factors = np.ones((T, S), bool), np.ones((T, S))
    for t, s in np.ndindex(T, S):
        if isinstance(window, MonotonicWindow):
            seen[t, s] = abs(s - min(t, max(length - 1, 0))) <= RADIUS
        elif isinstance(window, PredictiveWindow):
            kernel, v = (np.asarray(w, "float64") for w in (window.kernel, window.v))
            p = max(length - 1, 0) / (1 + np.exp(-v @ np.tanh(query[t] @ kernel)))
            seen[t, s] = abs(s - p) <= RADIUS
            factors[t, s] = np.exp(-((s - p) ** 2) / (2 * (RADIUS / 2) ** 2))
    return seen, factors


SCORES = {
    "dot": DotScore,
    "scaled dot": lambda: DotScore(scaled=True),
    "general": GeneralScore,
    "scaled general": lambda: GeneralScore(scaled=True),
    "additive": lambda: AdditiveScore(A),
    "normalized": lambda: AdditiveScore(A, normalized=True),
    "of layers": lambda: AdditiveScore(A, num_layers=3),
}
WINDOWS = {
    "global": lambda: None,
    "monotonic": lambda: MonotonicWindow(RADIUS),
    "predictive": lambda: PredictiveWindow(RADIUS),
}


def make(score, window="global"):
    """An attention with random weights, queries and a memory that suit it."""
    rng = np.random.default_rng(5)
    width = DM if "dot" in score else DQ
    query = rng.normal(size=(B, T, width)).astype("float32")
    memory = rng.normal(size=(B, S, DM)).astype("float32")
    attention = Attention(SCORES[score](), WINDOWS[window]())
    attention.build(query.shape, memory.shape)
    for weight in attention.weights:
        weight.assign(rng.normal(size=weight.shape) / 2)
    return attention, query, memory


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("score", SCORES)
def test_alignments_and_contexts_equal_numpy(score, window):
    attention, query, memory = make(score, window)
    contexts, alignments = attention(query, attention.project(memory, MASK))
    for row, length in enumerate(LENGTHS):
        scores = scores_of(attention.score, query[row], memory[row])
        seen, factors = window_of(attention.window, query[row], length)
        scores = np.where(seen & MASK[row], scores, -np.inf)
        exponentials = np.exp(scores - np.maximum(scores.max(1, keepdims=True), -1e300))
        expected = exponentials / np.maximum(exponentials.sum(1, keepdims=True), 1e-300) * factors
        np.testing.assert_allclose(alignments[row], expected, atol=1e-5)
        np.testing.assert_allclose(contexts[row], expected @ memory[row], atol=1e-4)


@pytest.mark.parametrize("window", ["global", "predictive"])
@pytest.mark.parametrize("score", SCORES)
def test_gradients_are_right_and_finite_where_a_source_is_empty(score, window):
    attention, query, memory = make(score, window)

    def loss(query):
        return ops.sum(attention(query, attention.project(memory, MASK))[0] ** 2)

    value, gradients, d_query = value_and_gradients(loss, attention.trainable_variables, query)
    for gradient in [value, d_query, *gradients]:
        assert np.isfinite(ops.convert_to_numpy(gradient)).all()
    if window == "predictive":  # the loss jumps where a position enters the window
        return
    step = 1e-2 * np.random.default_rng(6).normal(size=query.shape).astype("float32")
    change = float(loss(query + step)) - float(loss(query - step))
    np.testing.assert_allclose(change, 2 * np.sum(d_query * step), rtol=2e-2)


def test_places_in_the_target_can_be_given():
    attention, query, memory = make("general", "monotonic")
    source = attention.project(memory, MASK)
    everything = ops.convert_to_numpy(attention(query, source)[1])
    for t in range(T):
        positions = np.full((B, 1), t, "int32")
        alone = attention(query[:, t : t + 1], source, positions=positions)[1]
        np.testing.assert_allclose(alone[:, 0], everything[:, t], atol=1e-6)


def test_heads_equal_those_of_keras():
    attention = MultiHeadSourceAttention(num_heads=3, key_dim=A)
    rng = np.random.default_rng(7)
    query, memory = rng.normal(size=(B, T, DQ)), rng.normal(size=(B, S, DM))
    query, memory = query.astype("float32"), memory.astype("float32")
    attention.build(query.shape, memory.shape)
    contexts, alignments = attention(query, attention.project(memory, MASK))
    expected, weights = attention.heads(
        query, memory, attention_mask=MASK[:, None], return_attention_scores=True
    )
    np.testing.assert_allclose(contexts[:2], expected[:2], atol=1e-5)  # the third has no source
    np.testing.assert_allclose(alignments[:2], ops.convert_to_numpy(weights).mean(1)[:2], atol=1e-6)
    np.testing.assert_array_equal(alignments[2], np.zeros((T, S)))


def test_heads_with_one_value_equal_their_formula():
    attention = MultiHeadSourceAttention(num_heads=3, key_dim=A, shared_value=True)
    attention.build((None, None, DQ), (None, None, DM))
    rng = np.random.default_rng(7)
    query, memory = rng.normal(size=(B, T, DQ)), rng.normal(size=(B, S, DM))
    for weight in attention.weights:  # biases too
        weight.assign(rng.normal(size=weight.shape))
    weights = {v.path.split("heads/")[-1]: np.asarray(v, "float64") for v in attention.weights}
    assert sorted(weights) == [f"{x}/{y}" for x in ("key", "query", "value") for y in PARTS]
    source = attention.project(memory.astype("float32"), MASK)
    contexts, alignments = attention(query.astype("float32"), source)
    assert contexts.shape == attention.compute_output_spec(query, source)[0].shape == (B, T, 3 * A)
    for b, length in enumerate(LENGTHS):
        values = memory[b] @ weights["value/kernel"] + weights["value/bias"]
        shares = []
        for n in range(3):
            q, k = (
                x[b] @ weights[f"{name}/kernel"][:, n] + weights[f"{name}/bias"][n]
                for name, x in (("query", query), ("key", memory))
            )
            scores = np.exp(q @ k.T / np.sqrt(A)) * MASK[b]
            shares.append(scores / scores.sum(axis=1, keepdims=True) if length else 0 * scores)
        expected = np.concatenate([share @ values for share in shares], axis=1)
        np.testing.assert_allclose(contexts[b], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(alignments[b], np.mean(shares, axis=0), atol=1e-5)
    again = MultiHeadSourceAttention.from_config(attention.get_config())
    assert again.shared_value and again.get_config() == attention.get_config()


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("score", SCORES)
def test_config_makes_an_equal_attention(score, window):
    attention, _, _ = make(score, window)
    again = Attention.from_config(attention.get_config())
    assert again.get_config() == attention.get_config()


HALF = ["mixed_bfloat16", "mixed_float16"]


@pytest.mark.parametrize("policy", HALF + ["float64"] * (keras.backend.backend() != "jax"))
def test_dtypes(policy):
    score = AdditiveScore(A, normalized=True, dtype=policy)
    attention = Attention(score, PredictiveWindow(RADIUS, dtype=policy), dtype=policy)
    attention.build((None, None, DQ), (None, None, DM))
    rng = np.random.default_rng(8)
    contexts, alignments = attention(
        rng.normal(size=(B, T, DQ)), attention.project(rng.normal(size=(B, S, DM)), MASK)
    )
    assert keras.backend.standardize_dtype(contexts.dtype) == attention.compute_dtype
    assert keras.backend.standardize_dtype(alignments.dtype) == "float32"
    assert np.isfinite(ops.convert_to_numpy(ops.cast(contexts, "float32"))).all()


@pytest.mark.parametrize(
    ("make_wrong", "message"),
    [
        (lambda: AdditiveScore(0), "`units` must be a positive integer"),
        (lambda: AdditiveScore(2, num_layers=0), "`num_layers` must be a positive integer"),
        (lambda: MonotonicWindow(0), "`radius` must be a positive integer"),
        (lambda: PredictiveWindow(1.5), "`radius` must be a positive integer"),
        (lambda: Attention(DotScore()).build((B, T, DQ), (B, S, DM)), "of the same width"),
    ],
)
def test_wrong_arguments(make_wrong, message):
    with pytest.raises(ValueError, match=message):
        make_wrong()
