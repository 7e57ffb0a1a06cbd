"""Teachers of whom some words' log-probabilities are stored."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.fused_loss import tiling
from keras_drill.ops import linear_kl_divergence, sparse_linear_kl_divergence
from tests.fused_loss.test_linear_kl_divergence import (
    FLOAT,
    IS_DOUBLE,
    factors,
    log_softmax,
    logits_of,
)
from tests.gradients import value_and_gradients

V, D = 37, 5


def make_case(seed=0, num_words=7, vocabulary_size=V):
    rng = np.random.default_rng(seed)
    log_p = log_softmax(2 * rng.normal(size=(2, 3, vocabulary_size)))
    words = np.argsort(rng.random(log_p.shape), axis=-1)[..., :num_words]
    return {
        "hidden": rng.normal(size=(2, 3, D)),
        "labels": rng.normal(size=(vocabulary_size, D)),
        "bias": rng.normal(size=vocabulary_size),
        "teacher_words": words,
        "teacher_log_probs": np.take_along_axis(log_p, words, -1),
    }


def oracle(case, rest, temperature=1.0, cap=None, targets=None, weight=0.5):
    """Losses `[...]`, of all words by name: every event of the teacher's has a place."""
    s = logits_of(case["hidden"], case["labels"], case["bias"], cap)
    q = np.exp(log_softmax(s / temperature))
    p = np.exp(case["teacher_log_probs"] / temperature)
    if rest == "renormalize":
        p = p / p.sum(-1, keepdims=True)
    known = np.take_along_axis(q, case["teacher_words"], -1)
    losses = np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / known), 0).sum(-1)
    if rest == "bucket":
        is_known = np.zeros_like(q)
        np.put_along_axis(is_known, case["teacher_words"], p > 0, -1)
        p_rest, q_rest = 1 - p.sum(-1), (q * (1 - is_known)).sum(-1)
        has_rest = p_rest > 1e-9
        ratio = np.where(has_rest, p_rest, 1) / np.where(has_rest, q_rest, 1)
        losses = losses + np.where(has_rest, p_rest * np.log(ratio), 0)
    losses = temperature**2 * losses
    if targets is not None:
        of_targets = np.take_along_axis(log_softmax(s), targets[..., None], -1)[..., 0]
        losses = (1 - weight) * losses - weight * of_targets
    return losses


def check(case, rest, options, tile_size):
    names = ("hidden", "labels", "bias")

    def function(*tensors):
        given = {k: x.astype(FLOAT) if x.dtype == "float64" else x for k, x in case.items()}
        given.update(zip(names, tensors, strict=True))
        arguments = {k: v for k, v in options.items() if k not in ("cap", "weight")}
        losses = sparse_linear_kl_divergence(
            **given,
            **arguments,
            logit_soft_cap=options.get("cap"),
            cross_entropy_weight=options.get("weight", 0.5),
            rest=rest,
            tile_size=tile_size,
            reduction="none",
        )
        return ops.sum(losses * factors((2, 3)).astype(FLOAT))

    def reference(**changed):
        return np.sum(oracle({**case, **changed}, rest, **options) * factors((2, 3)))

    value, _, *gradients = value_and_gradients(
        function, [], *(case[name].astype(FLOAT) for name in names)
    )
    precision = 1e-7 if IS_DOUBLE else 2e-4
    np.testing.assert_allclose(value, reference(), precision, precision)
    rng = np.random.default_rng(1)
    for name, gradient in zip(names, gradients, strict=True):
        direction = rng.normal(size=case[name].shape)
        ends = [reference(**{name: case[name] + step * direction}) for step in (1e-5, -1e-5)]
        atol = 1e-9 + precision * np.abs(gradient * direction).sum()
        slope = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(np.sum(gradient * direction), slope, precision, atol)


def options_of(rest):
    targets = np.random.default_rng(2).integers(0, V, (2, 3))
    temperature = 2.0 if rest == "renormalize" else 1.0
    return {"temperature": temperature, "cap": 3.0, "targets": targets, "weight": 0.3}


@pytest.mark.parametrize("rest", ["bucket", "renormalize"])
def test_value_and_gradients(rest):
    case = make_case()
    case["teacher_log_probs"][0, 0, 2:] = -np.inf  # places that are not used
    case["teacher_words"][0, 0, 2:] = case["teacher_words"][0, 0, 0]
    case["teacher_log_probs"][0, 0, 0] = np.log(0.3)
    words = case["teacher_words"].copy()
    case["teacher_words"][0, 0, 2:] = [i for i in range(V) if i not in words[0, 0, :2]][:5]
    check(case, rest, options_of(rest), 4)


@pytest.mark.slow
@pytest.mark.parametrize("rest", ["bucket", "renormalize"])
def test_many_configurations(rest, monkeypatch):
    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 1)
    for seed in range(12):
        for num_words, size in ((1, V), (V, V), (5, 263), (1, 1)):
            check(make_case(seed, num_words, size), rest, {}, 2 + seed % 5)


def test_all_words_are_the_whole_teacher():
    case = make_case(num_words=V)
    order = np.argsort(case["teacher_words"], -1)
    log_p = np.take_along_axis(case["teacher_log_probs"], order, -1)
    arguments = {n: case[n].astype(FLOAT) for n in ("hidden", "labels", "bias")}
    teacher = {"teacher_hidden": log_p.astype(FLOAT), "teacher_labels": np.eye(V, dtype=FLOAT)}
    expected = linear_kl_divergence(**arguments, **teacher)
    for rest in ("bucket", "renormalize"):
        found = sparse_linear_kl_divergence(
            **arguments,
            teacher_words=case["teacher_words"],
            teacher_log_probs=case["teacher_log_probs"].astype(FLOAT),
            rest=rest,
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_bucket_is_the_lower_bound_that_the_teacher_reaches():
    """A student that is its teacher has no loss with "bucket", and one with "renormalize"."""
    case = make_case()
    rng = np.random.default_rng(4)
    hidden, labels = rng.normal(size=(2, 3, D)), rng.normal(size=(V, D))
    log_p = log_softmax(hidden @ labels.T)
    order = np.argsort(-log_p, -1)[..., :7]
    stored = {
        "teacher_words": order,
        "teacher_log_probs": np.take_along_axis(log_p, order, -1).astype("float32"),
    }
    own = {"hidden": hidden.astype("float32"), "labels": labels.astype("float32")}
    assert float(sparse_linear_kl_divergence(**own, **stored)) < 1e-6
    assert float(sparse_linear_kl_divergence(**own, **stored, rest="renormalize")) > 0.1
    student = {n: case[n].astype("float32") for n in own}
    bound = sparse_linear_kl_divergence(**student, **stored, reduction="none")
    whole = linear_kl_divergence(
        **student, **{f"teacher_{n}": x for n, x in own.items()}, reduction="none"
    )
    assert (np.asarray(bound) < np.asarray(whole)).all()


def test_ignored_tokens_may_have_anything():
    case = {k: x.astype("float32") if x.dtype == "float64" else x for k, x in make_case().items()}
    weights = np.array([[0.0, 1, 1], [1, 0, 2]], "float32")
    expected = sparse_linear_kl_divergence(**case, sample_weight=weights)
    is_ignored = weights == 0
    case["teacher_words"][is_ignored], case["teacher_log_probs"][is_ignored] = -100, np.nan
    case["hidden"][is_ignored] = np.nan
    np.testing.assert_allclose(
        sparse_linear_kl_divergence(**case, sample_weight=weights), expected, rtol=1e-6
    )


WRONG = [
    ({"teacher_words": np.full((2, 3, 7), V)}, "`teacher_words` must be word indices"),
    ({"teacher_words": np.full((2, 3, 7), -1)}, "`teacher_words` must be word indices"),
    ({"teacher_words": np.zeros((2, 3, 5), "int32")}, "`teacher_log_probs` must have the shape"),
    ({"teacher_words": np.zeros((2, 4, 7), "int32")}, "`teacher_words` must have the shape"),
    ({"teacher_words": np.zeros((2, 3, 0), "int32")}, "`teacher_words` must be"),
    ({"teacher_words": np.zeros((2, 3, 7), "float32")}, "`teacher_words` must hold integers"),
    ({"teacher_log_probs": np.zeros((2, 3, 7), "int32")}, "`teacher_log_probs` must hold floats"),
    ({"teacher_log_probs": np.zeros((2, 3, 7), "float32")}, "`teacher_log_probs` must be log-prob"),
    ({"teacher_log_probs": np.full((2, 3, 7), np.nan)}, "`teacher_log_probs` must be log-prob"),
    (
        {"teacher_log_probs": np.full((2, 3, 7), -np.inf), "rest": "renormalize"},
        "`teacher_log_probs` must be .*more than 0",
    ),
    ({"rest": "zero"}, "`rest` must be"),
    ({"temperature": 2.0}, "`temperature` must be 1 with"),
    ({"temperature": -1.0}, "`temperature` must be positive"),
    ({"targets": np.zeros((2, 3), "int32"), "cross_entropy_weight": -1}, "`cross_entropy_weight`"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=lambda x: str(x)[:30])
def test_what_is_refused(change, message):
    case = {k: x.astype("float32") if x.dtype == "float64" else x for k, x in make_case().items()}
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        sparse_linear_kl_divergence(**{**case, **change})


@pytest.mark.slow
@pytest.mark.parametrize(("change", "message"), WRONG[:1] + WRONG[7:8], ids=["words", "sums"])
def test_what_compiled_functions_refuse(change, message):
    """By an error in TensorFlow's graphs, and NaN where nothing can be raised."""
    case = {k: x.astype("float32") if x.dtype == "float64" else x for k, x in make_case().items()}
    case.update(change)
    words, log_probs = case.pop("teacher_words"), case.pop("teacher_log_probs")

    def function(words, log_probs):
        arguments = {"teacher_words": words, "teacher_log_probs": log_probs}
        return sparse_linear_kl_divergence(**case, **arguments, training=False)

    if keras.backend.backend() == "jax":
        import jax

        assert np.isnan(jax.jit(function)(words, log_probs))
        return
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.function(function)(tf.constant(words), tf.constant(log_probs))
