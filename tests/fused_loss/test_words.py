"""Label smoothing over words and ranks of targets, against oracles, for words of every kind."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.fused_loss import label_blocks, tiling
from keras_drill.fused_loss import walk as tile_walk
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions, WordLabels
from keras_drill.fused_loss.losses import token_losses, weighted_loss
from keras_drill.scores import InnerProduct, KerBSKernel
from tests.gradients import value_and_gradients

N, V, M, S, D = 11, 23, 41, 3, 7
SMOOTHING = 0.2
IS_JAX = keras.backend.backend() == "jax"
# On JAX eager gradients take seconds: there only what has everything.
KINDS = ["both"] if IS_JAX else ["softmax", "mixture", "senses", "both"]


def log_sum_exp(x, axis):
    top = x.max(axis, keepdims=True)
    return (np.log(np.exp(x - top).sum(axis, keepdims=True)) + top).squeeze(axis)


class Case:
    """Contexts, labels and words for `kind` ("softmax", "mixture", "senses" or "both")."""

    def __init__(self, kind: str, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.k = 5 if kind in ("mixture", "both") else 1
        self.has_senses = kind in ("senses", "both")
        m = M if self.has_senses else V
        # Every word has a label, no word has more than S, and they lie anywhere.
        self.words = rng.permutation(np.r_[np.arange(V), rng.permutation(np.arange(V))[: m - V]])
        if not self.has_senses:
            self.words = np.arange(V)
        self.arrays = {
            "contexts": rng.normal(size=(N, self.k, D)),
            "log_priors": np.log(rng.dirichlet(np.ones(self.k), N)),
            "labels": rng.normal(size=(m, D)),
            "bias": rng.normal(size=m),
        }
        self.targets = rng.integers(0, V, N)
        self.weights = rng.random(N)
        self.weights[[2, 7]] = 0
        senses = [np.flatnonzero(self.words == v) for v in range(V)]
        self.columns = np.array([[*s, *[0] * (S - len(s))] for s in senses], "int32")
        self.mask = np.array([[True] * len(s) + [False] * (S - len(s)) for s in senses])

    def inputs(self, contexts, log_priors, labels, bias) -> WalkInputs:
        columns, mask, word_labels = self.targets[:, None], None, None
        if self.has_senses:
            columns, mask = self.columns[self.targets], self.mask[self.targets]
            word_labels = WordLabels(*map(ops.convert_to_tensor, (self.columns, self.mask)), None)
            word_labels = word_labels._replace(words=ops.convert_to_tensor(self.words))
            mask = ops.convert_to_tensor(mask)
        return WalkInputs(
            contexts,
            log_priors if self.k > 1 else None,
            labels,
            bias,
            (),
            ops.convert_to_tensor(columns),
            mask,
            ops.convert_to_tensor(self.targets),
            word_labels,
        )

    def word_log_probs(self, cap=None):
        """`[N, V]` in float64, and the normalisers `[N, K]`."""
        a = self.arrays
        scores = np.einsum("nkd,md->nkm", a["contexts"], a["labels"]) + a["bias"]
        scores = scores if cap is None else cap * np.tanh(scores / cap)
        normalizer = log_sum_exp(scores, -1)
        scores = scores - normalizer[..., None] + a["log_priors"][..., None]
        labels = log_sum_exp(scores, 1)
        words = [log_sum_exp(labels[:, self.words == v], -1) for v in range(V)]
        return np.stack(words, -1), normalizer

    def loss(self, smoothing=0.0, z_loss=0.0, cap=None):
        log_probs, normalizer = self.word_log_probs(cap)
        targeted = log_probs[np.arange(N), self.targets]
        losses = -(1 - smoothing) * targeted - smoothing * log_probs.mean(-1)
        return self.weights @ (losses + z_loss * np.square(normalizer).mean(-1))

    def ranks(self, cap=None):
        order = np.argsort(-self.word_log_probs(cap)[0], kind="stable")
        ranks = np.argmax(order == self.targets[:, None], axis=-1)
        return np.where(self.weights == 0, 0, ranks)


def differences(function, array, entries, step=1e-6):
    slopes = []
    for entry in entries:
        kept = array[entry]
        array[entry] = kept + step
        above = function()
        array[entry] = kept - step
        slopes.append((above - function()) / (2 * step))
        array[entry] = kept
    return np.array(slopes)


def assert_is_the_oracle(case, dtype, tolerance, options, loss=weighted_loss):
    names = {"smoothing": "label_smoothing", "cap": "logit_soft_cap", "z_loss": "z_loss"}
    walk_options = WalkOptions(
        InnerProduct(), dtype, tile_size=4, **{names[n]: x for n, x in options.items()}
    )

    def function(*tensors):
        value = loss(case.inputs(*tensors), walk_options, ops.cast(case.weights, dtype))[0]
        return ops.sum(value) + 0 * ops.sum(tensors[1])  # K = 1 has no log-priors

    arrays = [x.astype(dtype) for x in case.arrays.values()]
    value, _, *gradients = value_and_gradients(function, [], *arrays)
    np.testing.assert_allclose(value, case.loss(**options), rtol=tolerance)
    rng = np.random.default_rng(1)
    for array, gradient in zip(case.arrays.values(), gradients, strict=True):
        if array.size == N:  # log-priors of one context
            continue
        entries = [np.unravel_index(i, array.shape) for i in rng.choice(array.size, 13)]
        expected = differences(lambda: case.loss(**options), array, entries)
        actual = np.array([gradient[entry] for entry in entries])
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(actual / scale, expected / scale, atol=max(tolerance, 1e-8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [{"smoothing": 0.2}, {"smoothing": 0.2, "z_loss": 0.1, "cap": 3.0}],
    ids=str,
)
def test_smoothing_is_over_words(kind, options):
    dtype = "float32" if IS_JAX else "float64"
    assert_is_the_oracle(Case(kind), dtype, 2e-5 if IS_JAX else 1e-12, options)


@pytest.mark.parametrize("kind", KINDS[-2:])
def test_smoothed_token_losses_and_float32(kind):
    assert_is_the_oracle(Case(kind), "float32", 2e-5, {"smoothing": 0.2}, token_losses)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cap, training", [(None, True), (3.0, True), (None, False)])
def test_ranks_are_those_of_a_sorted_list(kind, cap, training):
    case = Case(kind)
    options = WalkOptions(InnerProduct(), tile_size=4, logit_soft_cap=cap, with_ranks=True)
    inputs = case.inputs(*[ops.cast(x, "float32") for x in case.arrays.values()])
    result = weighted_loss(inputs, options, ops.cast(case.weights, "float32"), training)
    np.testing.assert_array_equal(result.ranks, case.ranks(cap))
    assert len(set(case.ranks())) > 4
    plain = weighted_loss(
        inputs, options._replace(with_ranks=False), ops.cast(case.weights, "float32"), training
    )
    assert plain.ranks is None
    np.testing.assert_allclose(result.loss, plain.loss, rtol=1e-6)


@pytest.mark.parametrize("kind", ["softmax", "mixture", "senses"])
def test_of_equal_words_the_first_comes_first_and_nan_is_last(kind):
    case = Case(kind)
    case.arrays["labels"][:] = case.arrays["bias"][:] = 0
    case.words = np.sort(case.words)
    if case.has_senses:  # as many senses for each word
        case.columns = np.arange(V, dtype="int32")[:, None] + np.array([[0, 0, 0]], "int32")
        case.mask = np.array([[True, False, False]] * V)
        case.words = np.arange(V)
        case.arrays["labels"], case.arrays["bias"] = np.zeros((V, D)), np.zeros(V)
    options = WalkOptions(InnerProduct(), tile_size=4, with_ranks=True)
    for training in (True, False):
        inputs = case.inputs(*[ops.cast(x, "float32") for x in case.arrays.values()])
        ranks = weighted_loss(inputs, options, None, training).ranks
        np.testing.assert_array_equal(ranks, case.targets)
        ranks = weighted_loss(
            inputs._replace(contexts=inputs.contexts * np.nan), options, None, training
        ).ranks
        np.testing.assert_array_equal(ranks, V)


@pytest.mark.slow
@pytest.mark.skipif(IS_JAX, reason="TensorFlow's compilers")
@pytest.mark.parametrize(
    ("kind", "jit_compile"),
    [
        ("softmax", False),
        ("senses", True),
        ("softmax", True),
        ("mixture", True),
        ("mixture", False),
        ("senses", False),
    ],
)
def test_compiled_by_blocks(jit_compile, kind, monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(tile_walk, "FUSE_FROM_SCORES", 0)
    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 4 * 13 * D)  # several blocks
    monkeypatch.setattr(label_blocks.MatrixSum, "rows_per_chunk", 4)
    case = Case(kind)
    options = WalkOptions(
        InnerProduct(), "float64", tile_size=4, label_smoothing=SMOOTHING, with_ranks=True
    )

    @tf.function(jit_compile=jit_compile)
    def compiled(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            result = weighted_loss(case.inputs(*tensors), options, tf.constant(case.weights))
        return result.loss, result.ranks, tape.gradient(result.loss, tensors)

    loss, ranks, gradients = compiled(*[tf.constant(x) for x in case.arrays.values()])
    np.testing.assert_allclose(loss, case.loss(SMOOTHING), rtol=1e-12)
    np.testing.assert_array_equal(ranks, case.ranks())
    entries = [(0, 1), (5, 3), (V - 1, D - 1)]
    expected = differences(lambda: case.loss(SMOOTHING), case.arrays["labels"], entries)
    np.testing.assert_allclose([gradients[2][e] for e in entries], expected, atol=1e-7)


@pytest.mark.parametrize("compute_dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_in_half_precision_are_those_of_its_own_scores(kind, compute_dtype):
    case = Case(kind)
    # Halves and quarters: all products are exact, so that there is nothing to round.
    for name in ("contexts", "labels", "bias"):
        case.arrays[name] = np.round(2 * case.arrays[name]) / 2
    options = WalkOptions(InnerProduct(), compute_dtype, tile_size=4, with_ranks=True)
    inputs = case.inputs(*[ops.cast(x, "float32") for x in case.arrays.values()])
    ranks = np.asarray(weighted_loss(inputs, options, ops.cast(case.weights, "float32")).ranks)
    log_probs = np.asarray(case.word_log_probs()[0], "float32")
    target = np.take_along_axis(log_probs, case.targets[:, None], 1)
    fewest, most = (log_probs > target + 1e-5).sum(1), (log_probs > target - 1e-5).sum(1)
    counted = case.weights != 0
    assert np.all((fewest <= ranks) & (ranks <= most) | ~counted)


def test_smoothing_with_the_kernel_of_kerbs_is_that_of_its_log_probabilities():
    case = Case("senses")
    theta = np.random.default_rng(2).normal(size=M)
    dtype = "float32" if IS_JAX else "float64"

    def fused(contexts, log_priors, labels, bias, theta):
        options = WalkOptions(KerBSKernel(), dtype, tile_size=4, label_smoothing=SMOOTHING)
        inputs = case.inputs(contexts, log_priors, labels, bias)._replace(score_parameters=(theta,))
        loss = weighted_loss(inputs, options, ops.cast(case.weights, dtype)).loss
        return loss + 0 * ops.sum(log_priors)

    def materialised(contexts, log_priors, labels, bias, theta):
        scores = KerBSKernel().scores(contexts[:, 0], labels, (theta,)) + bias
        senses = ops.take(ops.log_softmax(scores), case.columns, axis=-1)
        senses = ops.where(case.mask, senses, ops.full_like(senses, -np.inf))
        log_probs = ops.logsumexp(senses, axis=-1)
        one_hot = ops.one_hot(case.targets, V, dtype=dtype)
        smoothed = (1 - SMOOTHING) * one_hot + SMOOTHING / V
        loss = -ops.sum(ops.cast(case.weights, dtype)[:, None] * smoothed * log_probs)
        return loss + 0 * ops.sum(log_priors)

    arrays = [x.astype(dtype) for x in (*case.arrays.values(), theta)]
    value, _, *expected = value_and_gradients(materialised, [], *arrays)
    fused_value, _, *gradients = value_and_gradients(fused, [], *arrays)
    tolerance = 2e-5 if IS_JAX else 1e-11
    np.testing.assert_allclose(fused_value, value, rtol=tolerance)
    for actual, wanted in zip(gradients, expected, strict=True):
        scale = max(np.abs(wanted).max(), 1e-30)
        np.testing.assert_allclose(actual / scale, wanted / scale, atol=tolerance)
