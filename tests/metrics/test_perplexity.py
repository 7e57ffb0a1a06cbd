import keras
import numpy as np
import pytest

from keras_drill.metrics import Perplexity, TokenMean

V, B, T = 11, 3, 5


def make_batches(number=3):
    rng = np.random.default_rng(0)
    for _ in range(number):
        scores = rng.normal(0, 2, (B, T, V))
        targets = rng.integers(0, V, (B, T))
        weights = rng.random((B, T)) * (rng.random((B, T)) < 0.5)
        yield scores, targets, weights


def expected_perplexity(batches, weigh):
    total = count = 0.0
    for scores, targets, weights in batches:
        log_probs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        chosen = np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
        counted = np.broadcast_to(weigh(weights), (B, T))
        total, count = total - (counted * chosen).sum(), count + counted.sum()
    return np.exp(total / count)


@pytest.mark.parametrize("column", [False, True], ids=["y", "y-column"])
@pytest.mark.parametrize("over_words", [True, False])
@pytest.mark.parametrize(
    "weigh, given",
    [
        (lambda w: 1.0, lambda w: None),
        (lambda w: w, lambda w: w),
        (lambda w: w, lambda w: w[..., None]),
        (lambda w: w[:, :1], lambda w: w[:, 0]),
        (lambda w: w[:, :1], lambda w: w[:, :1]),
    ],
    ids=["none", "tokens", "column", "sequences", "broadcast"],
)
def test_weighted_mean_over_all_batches(weigh, given, over_words, column):
    metric = Perplexity()
    for scores, targets, weights in make_batches():
        predicted = scores
        if not over_words:
            log_probs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
            predicted = np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
        metric.update_state(targets[..., None] if column else targets, predicted, given(weights))
    expected = expected_perplexity(make_batches(), weigh)
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("over_words", [True, False])
def test_what_has_no_weight_may_be_anything(over_words):
    metric = Perplexity()
    predicted = np.log(np.full((2, 2, 4) if over_words else (2, 2), 0.25))
    predicted[1, 0] = np.nan
    metric.update_state([[1, 2], [-100, 7]], predicted, [[1.0, 1.0], [0.0, 0.0]])
    assert float(metric.result()) == pytest.approx(4, rel=1e-5)


def test_one_word_and_one_token():
    metric = Perplexity()
    metric.update_state(np.zeros((3, 1), int), np.log(np.full((3, 1), 0.2)))
    metric.update_state(np.zeros((3, 1), int), np.log(np.full((3, 5), 0.2)))
    assert float(metric.result()) == pytest.approx(5, rel=1e-5)


@pytest.mark.parametrize(
    "y_true, y_pred, weights, message",
    [
        ((2, 3), (2, 5), None, "`y_pred` must have the shape of `y_true`"),
        ((2, 3), (2, 5, 7), None, "`y_pred` must have the shape of `y_true`"),
        ((2, 3), (2,), None, "`y_pred` must have the shape of `y_true`"),
        ((2, 3), (2, 3, 5, 7), None, "`y_pred` must have the shape of `y_true`"),
        ((2, 3), (2, 3), (3,), r"`sample_weight` must have the targets' shape \(2, 3\).*\(3,\)"),
        ((2, 3), (2, 3), (2, 2), "`sample_weight` must have"),
        ((2, 3), (2, 3), (2, 3, 3), "`sample_weight` must have"),
    ],
)
def test_shapes_that_do_not_fit(y_true, y_pred, weights, message):
    weights = None if weights is None else np.ones(weights)
    with pytest.raises(ValueError, match=message):
        Perplexity().update_state(np.zeros(y_true, int), np.zeros(y_pred), weights)


def run(kind, function):
    if kind == "eager":
        return function
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, jit_compile=kind == "xla")


@pytest.mark.parametrize("kind", ["eager", "graph", "xla"])
def test_nothing_is_lost_after_many_tokens(kind):
    if (keras.backend.backend(), kind) == ("jax", "graph"):
        pytest.skip("JAX has one compiler")
    metric = TokenMean()
    start = [0.3 * 2**29, 2.0**29, 0, 0]
    for variable, value in zip(metric.variables, start, strict=True):
        variable.assign(value)
    values = keras.ops.convert_to_tensor(np.full(1001, 0.5, "float32"))

    def update(*variables):
        return metric.stateless_update_state(variables, values)

    update = run(kind, update)
    variables = [keras.ops.convert_to_tensor(variable) for variable in metric.variables]
    for _ in range(100):
        variables = update(*variables)
    total, count, *rests = (keras.ops.convert_to_numpy(v).astype("float64") for v in variables)
    assert count + rests[1] == 2**29 + 100 * 1001
    assert total + rests[0] == pytest.approx(float(np.float32(0.3 * 2**29)) + 50 * 1001, abs=1e-2)


def test_it_comes_back_from_its_config():
    metric = Perplexity.from_config(Perplexity(name="ppl").get_config())
    assert metric.name == "ppl" and float(metric.result()) == 1
