"""The divergence from a teacher against its formula in float64, and what it must be like."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.fused_loss import tiling
from keras_drill.ops import linear_cross_entropy, linear_kl_divergence
from tests.gradients import value_and_gradients

IS_DOUBLE = keras.backend.backend() == "tensorflow"  # JAX computes in float32
FLOAT = "float64" if IS_DOUBLE else "float32"
DIVERGENCES = ("forward_kl", "reverse_kl", "jensen_shannon")


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def logits_of(hidden, labels, bias, cap):
    logits = hidden @ labels.T + (0 if bias is None else bias)
    return logits if cap is None else cap * np.tanh(logits / cap)


def divergence_of(t, s, divergence="forward_kl", beta=0.5, temperature=1.0):
    """`[...]` of logits `[..., V]`, the teacher's and the student's, in float64."""
    log_p, log_q = log_softmax(t / temperature), log_softmax(s / temperature)
    p, q = np.exp(log_p), np.exp(log_q)
    if divergence == "forward_kl":
        found = p * (log_p - log_q)
    elif divergence == "reverse_kl":
        found = q * (log_q - log_p)
    else:
        log_m = np.log(beta * p + (1 - beta) * q)
        found = beta * p * (log_p - log_m) + (1 - beta) * q * (log_q - log_m)
    return temperature**2 * found.sum(-1)


def oracle(case, options):
    """The loss of `linear_kl_divergence(**case, **options)`, in float64."""
    options = dict(options)
    reduction, targets = options.pop("reduction"), options.pop("targets", None)
    weight = options.pop("cross_entropy_weight", 0.5)
    s = logits_of(case["hidden"], case["labels"], case["bias"], options.pop("logit_soft_cap"))
    t = logits_of(
        case["teacher_hidden"],
        case["teacher_labels"],
        case["teacher_bias"],
        options.pop("teacher_logit_soft_cap"),
    )
    losses = divergence_of(t, s, **options)
    if targets is not None:
        of_targets = np.take_along_axis(log_softmax(s), targets[..., None], -1)[..., 0]
        losses = (1 - weight) * losses - weight * of_targets
    losses = losses * case["sample_weight"]
    if reduction == "none":
        return np.sum(losses * factors(losses.shape))
    total = case["sample_weight"].sum()
    return losses.sum() / (total if reduction == "mean" and total else 1.0)


def factors(shape):
    """What losses of tokens are multiplied by, so that there is one number to differentiate."""
    return np.arange(1, 1 + np.prod(shape)).reshape(shape) / 7


def random_case(seed):
    rng = np.random.default_rng(seed)
    vocabulary_size = int(rng.choice([1, 2, 13, 37, 263]))
    width, teacher_width, steps = (int(rng.choice([2, 3, 5, 7])) for _ in range(3))
    shape = [(steps,), (2, 3), (11,)][rng.integers(3)]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], shape)
    scale = rng.choice([0.3, 1.0, 3.0])
    case = {
        "hidden": scale * rng.normal(size=(*shape, width)),
        "labels": rng.normal(size=(vocabulary_size, width)),
        "teacher_hidden": scale * rng.normal(size=(*shape, teacher_width)),
        "teacher_labels": rng.normal(size=(vocabulary_size, teacher_width)),
        "bias": rng.normal(size=vocabulary_size) if rng.random() < 0.6 else None,
        "teacher_bias": rng.normal(size=vocabulary_size) if rng.random() < 0.6 else None,
        "sample_weight": weights,
    }
    options = {
        "divergence": DIVERGENCES[rng.integers(3)],
        "beta": float(rng.choice([0.1, 0.5, 0.8])),
        "temperature": float(rng.choice([0.5, 1.0, 1.0, 3.0])),
        "reduction": ["mean", "sum", "none"][rng.integers(3)],
        "logit_soft_cap": float(rng.choice([2.0, 9.0])) if rng.random() < 0.4 else None,
        "teacher_logit_soft_cap": 3.0 if rng.random() < 0.4 else None,
    }
    if rng.random() < 0.5:
        options["targets"] = rng.integers(0, vocabulary_size, shape)
        options["cross_entropy_weight"] = float(rng.choice([0.0, 0.3, 0.5]))
    return case, options, {"tile_size": int(rng.choice([2, 5, 7, 13]))}


def check_case(seed, monkeypatch):
    """Value and gradients, in blocks of 256 labels."""
    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 1)
    case, options, tiles = random_case(seed)
    names = [n for n in ("hidden", "labels", "bias", "sample_weight") if case[n] is not None]

    def function(*tensors):
        given = {n: None if x is None else x.astype(FLOAT) for n, x in case.items()}
        given.update(zip(names, tensors, strict=True))
        loss = linear_kl_divergence(**given, **options, **tiles)
        if options["reduction"] == "none":
            return ops.sum(loss * factors(case["sample_weight"].shape).astype(FLOAT))
        return loss

    value, _, *gradients = value_and_gradients(
        function, [], *(case[n].astype(FLOAT) for n in names)
    )
    message = f"seed {seed}: {options}"
    precision = 1e-9 if IS_DOUBLE else 2e-4
    np.testing.assert_allclose(
        value, oracle(case, options), precision, 1e-5 * precision, err_msg=message
    )
    rng = np.random.default_rng(seed + 1)
    for name, gradient in zip(names, gradients, strict=True):
        direction = rng.normal(size=case[name].shape)
        if name == "sample_weight":  # others are not computed
            direction *= case[name] > 0
            gradient = np.where(case[name] > 0, gradient, 0)
        ends = [
            oracle({**case, name: case[name] + step * direction}, options) for step in (1e-5, -1e-5)
        ]
        slope = (ends[0] - ends[1]) / 2e-5
        size = np.abs(gradient * direction).sum()
        precision = 1e-7 if IS_DOUBLE else 2e-4
        np.testing.assert_allclose(
            np.sum(gradient * direction),
            slope,
            precision,
            1e-9 + precision * size,
            err_msg=f"{name}, {message}",
        )


def test_random_configurations(monkeypatch):
    for seed in range(8 if IS_DOUBLE else 2):  # JAX compiles each
        check_case(seed, monkeypatch)


@pytest.mark.slow
def test_more_random_configurations(monkeypatch):
    for seed in range(8, 240):
        check_case(seed, monkeypatch)


def small_case(dtype="float32", seed=0, shape=(2, 5), vocabulary_size=37):
    rng = np.random.default_rng(seed)
    sizes = {
        "hidden": (*shape, 7),
        "labels": (vocabulary_size, 7),
        "teacher_hidden": (*shape, 11),
        "teacher_labels": (vocabulary_size, 11),
        "bias": (vocabulary_size,),
        "teacher_bias": (vocabulary_size,),
    }
    return {name: rng.normal(size=size).astype(dtype) for name, size in sizes.items()}


def with_gradients(case, **options):
    """The loss, and its gradients for hidden states, labels and bias."""

    def function(hidden, labels, bias):
        given = {**case, "hidden": hidden, "labels": labels, "bias": bias}
        return linear_kl_divergence(**given, **options)

    found = value_and_gradients(function, [], *(case[n] for n in ("hidden", "labels", "bias")))
    return found[0], found[2:]


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_a_student_that_is_its_teacher_has_nothing_to_learn(divergence):
    case = small_case()
    for name in ("hidden", "labels", "bias"):
        case[f"teacher_{name}"] = case[name]
    for temperature in (1.0, 2.0):
        options = {"divergence": divergence, "temperature": temperature}
        loss, gradients = with_gradients(case, **options)
        np.testing.assert_allclose(loss, 0, atol=2e-6)
        for gradient in gradients:
            np.testing.assert_allclose(gradient, 0, atol=2e-6)


def test_properties():
    """Divergences are not negative; Jensen-Shannon is symmetric at 1/2, at most log 2, and has the
    KL divergences as its limits; at a high temperature both of these are half the mean square of
    the centred logits' difference."""
    case = small_case(FLOAT, seed=3)
    loss = functools.partial(linear_kl_divergence, reduction="none")
    swapped = {
        **{f"teacher_{n}": case[n] for n in ("hidden", "labels", "bias")},
        **{n: case[f"teacher_{n}"] for n in ("hidden", "labels", "bias")},
    }
    found = {d: np.asarray(loss(**case, divergence=d)) for d in DIVERGENCES}
    assert all((x > 0).all() for x in found.values())
    assert (found["jensen_shannon"] < np.log(2)).all()
    np.testing.assert_allclose(
        loss(**swapped, divergence="jensen_shannon"), found["jensen_shannon"], rtol=1e-5
    )
    np.testing.assert_allclose(loss(**swapped), found["reverse_kl"], rtol=1e-5)
    if not IS_DOUBLE:
        return
    case = {name: x / 2 for name, x in case.items()}
    for beta, name in ((1e-7, "forward_kl"), (1 - 1e-7, "reverse_kl")):
        limit = loss(**case, divergence="jensen_shannon", beta=beta)
        expected = loss(**case, divergence=name)
        np.testing.assert_allclose(limit / min(beta, 1 - beta), expected, rtol=1e-3)
    s, t = (
        logits_of(case[f"{p}hidden"], case[f"{p}labels"], case[f"{p}bias"], None)
        for p in ("", "teacher_")
    )
    difference = (s - s.mean(-1, keepdims=True)) - (t - t.mean(-1, keepdims=True))
    expected = np.mean(difference**2, -1) / 2
    for name in ("forward_kl", "reverse_kl"):
        np.testing.assert_allclose(
            loss(**case, divergence=name, temperature=1e4), expected, rtol=1e-2
        )


def test_with_targets_it_is_the_weighted_sum_and_ignores_tokens():
    case = small_case()
    targets = np.random.default_rng(1).integers(0, 37, (2, 5))
    targets[0, :2] = -100
    case["hidden"][0, 0] = case["teacher_hidden"][0, 1] = np.nan
    mask = targets >= 0
    loss, gradients = with_gradients(
        case, targets=targets, cross_entropy_weight=0.3, ignore_index=-100, tile_size=3
    )
    alone, of_teacher = with_gradients(case, sample_weight=mask)

    def of_targets(*tensors):
        return linear_cross_entropy(*tensors[:2], targets, tensors[2], ignore_index=-100)

    names = ("hidden", "labels", "bias")
    value, _, *expected = value_and_gradients(of_targets, [], *(case[n] for n in names))
    np.testing.assert_allclose(loss, 0.3 * value + 0.7 * alone, rtol=1e-5)
    for found, a, b in zip(gradients, expected, of_teacher, strict=True):
        np.testing.assert_allclose(found, 0.3 * a + 0.7 * b, rtol=1e-4, atol=1e-6)
    assert float(linear_kl_divergence(**small_case(), sample_weight=np.zeros((2, 5)))) == 0
    empty = linear_kl_divergence(**small_case(shape=(0, 5)), reduction="none")
    assert tuple(empty.shape) == (0, 5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(dtype):
    """The student's hidden states are in half precision, the teacher's are not."""
    case = small_case()
    exact, expected = with_gradients(case, divergence="jensen_shannon")

    def function(hidden, labels, bias):
        given = {**case, "hidden": ops.cast(hidden, dtype), "labels": labels, "bias": bias}
        return linear_kl_divergence(**given, divergence="jensen_shannon")

    names = ("hidden", "labels", "bias")
    value, _, *found = value_and_gradients(function, [], *(case[n] for n in names))
    np.testing.assert_allclose(value, exact, rtol=3e-2)
    for gradient, reference in zip(found, expected, strict=True):
        assert gradient.dtype == np.float32
        np.testing.assert_allclose(gradient, reference, atol=3e-2 * np.abs(reference).max())


@pytest.mark.slow
@pytest.mark.parametrize("by_xla", [False, True])
def test_compiled_and_without_gradients(by_xla):
    """On TensorFlow with unknown sizes, and by XLA."""
    case = small_case()
    options = {"divergence": "reverse_kl", "temperature": 2.0, "tile_size": 3}
    expected, gradients = with_gradients(case, **options)
    loss = linear_kl_divergence(**case, **options, training=False)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)

    def function(hidden):
        return linear_kl_divergence(**{**case, "hidden": hidden}, **options)

    if keras.backend.backend() == "jax":
        import jax

        value, gradient = jax.jit(jax.value_and_grad(function))(case["hidden"])
    else:
        import tensorflow as tf

        def step(hidden):
            with tf.GradientTape() as tape:
                tape.watch(hidden)
                loss = function(hidden)
            return loss, tape.gradient(loss, hidden)

        signature = None if by_xla else [tf.TensorSpec((None, None, 7))]
        step = tf.function(step, input_signature=signature, jit_compile=by_xla)
        value, gradient = step(tf.constant(case["hidden"]))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(gradient, gradients[0], rtol=1e-4, atol=1e-6)


def test_frozen_labels_and_a_teacher_of_variables():
    """No gradient reaches the teacher; labels that do not train get none."""
    case = small_case()
    labels = keras.Variable(case["labels"], trainable=False)
    teacher = keras.Variable(case["teacher_labels"])

    def function(hidden, given):
        arguments = {**case, "hidden": hidden, "labels": labels, "teacher_labels": teacher}
        return linear_kl_divergence(**{**arguments, "teacher_hidden": given})

    _, _, d_hidden, d_teacher = value_and_gradients(
        lambda h, t: function(h, t) + 0 * ops.sum(t), [], case["hidden"], case["teacher_hidden"]
    )
    _, expected = with_gradients(case)
    np.testing.assert_allclose(d_hidden, expected[0], rtol=1e-5, atol=1e-7)
    assert not d_teacher.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teacher_hidden": np.zeros((2, 4, 11), "float32")}, "`teacher_hidden` must have"),
        ({"teacher_hidden": np.zeros((2, 5, 3), "float32")}, r"`teacher_hidden` must be \[..., 11"),
        (
            {"teacher_labels": np.zeros((31, 11), "float32"), "teacher_bias": None},
            "`teacher_labels` must have one row",
        ),
        ({"teacher_labels": np.zeros((37,), "float32")}, "`teacher_labels` must be a matrix"),
        ({"teacher_labels": np.zeros((37, 11), "int32")}, "`teacher_labels` must hold floats"),
        ({"teacher_bias": np.zeros(3, "float32")}, "`teacher_bias` must be"),
        ({"teacher_logit_soft_cap": 0.0}, "`teacher_logit_soft_cap` must be"),
        ({"hidden": np.zeros((2, 5, 3), "float32")}, "`hidden` must be"),
        ({"divergence": "kl"}, "`divergence` must be one of"),
        ({"beta": 1.0}, "`beta` must be in"),
        ({"temperature": 0.0}, "`temperature` must be positive"),
        ({"targets": np.zeros((2, 5), "int32"), "cross_entropy_weight": 1.0}, "`cross_entropy_wei"),
        ({"targets": np.full((2, 5), 37)}, "`targets` must be word indices"),
        ({"reduction": "average"}, "`reduction` must be"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_what_is_refused(change, message):
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        linear_kl_divergence(**{**small_case(), **change})
