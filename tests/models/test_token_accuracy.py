"""Token accuracy in language models and outside, against the argmax of all log-probabilities."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.metrics import Perplexity, TokenAccuracy
from keras_drill.metrics.token_accuracy import given_ranks

V, D, T = 29, 13, 5


def make_model(kind="tied", dtype="float32", mask_zero=False):
    keras.utils.set_random_seed(3)
    embedding = keras.layers.Embedding(V, D, mask_zero=mask_zero)
    backbone = keras.Sequential([embedding, keras.layers.Dense(D, activation="tanh")])
    make = {
        "tied": lambda: keras_drill.OutputLayer(V, embedding, dtype=dtype),
        "softmax": lambda: keras_drill.SoftmaxOutput(V, logit_soft_cap=5.0, dtype=dtype),
        "drill": lambda: keras_drill.DrillOutput(V, embedding, depth=2, dtype=dtype),
        "mos": lambda: keras_drill.MixtureOfSoftmaxes(V, embedding, 3, dtype=dtype),
        "kerbs": lambda: keras_drill.KernelizedBayesianSoftmax(V, num_senses=67, dtype=dtype),
    }
    model = keras_drill.LanguageModel(backbone, make[kind]())
    model(np.zeros((1, T), "int32"))
    if model.head.embedding is not None:  # large enough to be told apart
        table = model.head.embedding.embeddings
        table.assign(np.random.default_rng(0).normal(size=table.shape))
    return model


def data(n=7):
    rng = np.random.default_rng(1)
    tokens, weights = rng.integers(1, V, (n, T)), rng.random((n, T)).astype("float32")
    tokens[::2, 3:], weights[1, :2] = 0, 0
    targets = rng.integers(0, V, (n, T))
    return tokens, targets, weights


def accuracy(model, tokens, targets, weights, k):
    """Of the log-probabilities of all words."""
    log_probs = model.predict(tokens, verbose=0)
    best = np.argsort(-log_probs, axis=-1, kind="stable")[..., :k]
    return np.average((best == targets[..., None]).any(-1), weights=weights)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "tied",
        "mos",
        "kerbs",
        "softmax",
        "drill",
    ],
)
def test_evaluate_and_fit_count_what_an_argmax_finds(kind):
    model = make_model(kind)
    tokens, targets, weights = data()
    likely = np.argsort(-model.predict(tokens, verbose=0), axis=-1)
    targets[::3] = likely[::3, :, 0]  # some are right
    targets[1::3] = likely[1::3, :, 2]
    model.compile(
        keras.optimizers.SGD(0.0), metrics=["accuracy", TokenAccuracy(top_k=3), Perplexity()]
    )
    expected = [accuracy(model, tokens, targets, weights, k) for k in (1, 3)]
    assert 0.1 < expected[0] < expected[1] - 0.1 < 0.9
    results = model.evaluate(
        tokens, targets, sample_weight=weights, batch_size=3, verbose=0, return_dict=True
    )
    found = [results["accuracy"], results["top_3_accuracy"]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    history = model.fit(
        tokens, targets, sample_weight=weights, batch_size=3, verbose=0, shuffle=False
    ).history
    found = [history["accuracy"][0], history["top_3_accuracy"][0]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_masked_tokens_do_not_count():
    model = make_model(mask_zero=True)
    tokens, targets, _ = data()
    targets[:] = np.argmax(model.predict(tokens, verbose=0), axis=-1)
    targets[tokens == 0] = (targets[tokens == 0] + 1) % V
    targets[0, 0] = (targets[0, 0] + 1) % V
    model.compile("sgd", metrics=["sparse_categorical_accuracy"])
    results = model.evaluate(tokens, targets, batch_size=3, verbose=0, return_dict=True)
    num_tokens = (tokens != 0).sum()
    np.testing.assert_allclose(
        results["sparse_categorical_accuracy"], (num_tokens - 1) / num_tokens, rtol=1e-6
    )


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_counts_nearly_the_same(dtype):
    model = make_model(dtype=dtype)
    tokens, targets, weights = data(31)
    targets[::2] = np.argmax(make_model().predict(tokens[::2], verbose=0), axis=-1)
    model.compile("sgd", metrics=["accuracy"])
    result = model.evaluate(
        tokens, targets, sample_weight=weights, batch_size=31, verbose=0, return_dict=True
    )
    expected = accuracy(make_model(), tokens, targets, weights, 1)
    np.testing.assert_allclose(result["accuracy"], expected, atol=0.05)


@pytest.mark.slow
def test_a_step_compiled_by_xla():
    model = make_model("kerbs")
    tokens, targets, weights = data()
    targets[::2] = np.argmax(model.predict(tokens[::2], verbose=0), axis=-1)
    model.compile("sgd", metrics=["acc"], jit_compile=True)
    expected = accuracy(model, tokens, targets, weights, 1)
    found = model.train_on_batch(tokens, targets, weights, return_dict=True)
    np.testing.assert_allclose(found["acc"], expected, rtol=1e-5)


def test_ranks_are_made_only_where_a_metric_wants_them(monkeypatch):
    model = make_model()
    asked = []
    original = model.head.loss_log_prob_and_rank
    monkeypatch.setattr(
        type(model.head),
        "loss_log_prob_and_rank",
        lambda self, *arguments: asked.append(1) or original(*arguments),
    )
    tokens, targets, _ = data()
    for metrics, is_asked in (None, False), ([TokenAccuracy()], True), ([Perplexity()], False):
        asked.clear()
        model.compile("sgd", metrics=metrics)
        model.test_on_batch(tokens, targets)
        assert bool(asked) == is_asked


@pytest.mark.slow
def test_compiled_metrics_survive_saving(tmp_path):
    model = make_model()
    tokens, targets, _ = data()
    model.compile("sgd", metrics=["sparse_top_k_categorical_accuracy"])
    model.fit(tokens, targets, verbose=0)
    expected = model.evaluate(tokens, targets, verbose=0, return_dict=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    result = loaded.evaluate(tokens, targets, verbose=0, return_dict=True)
    name = "sparse_top_k_categorical_accuracy"
    np.testing.assert_allclose(result[name], expected[name])


@pytest.mark.parametrize(
    "metric",
    [
        "categorical_accuracy",
        "sparse_categorical_crossentropy",
        keras.metrics.SparseCategoricalAccuracy(),
        keras.metrics.SparseTopKCategoricalAccuracy(k=3),
        keras.metrics.sparse_categorical_accuracy,
    ],
    ids=lambda metric: getattr(metric, "__name__", None) or str(metric),
)
def test_metrics_that_want_all_words_are_refused(metric):
    with pytest.raises(ValueError, match=r"TokenAccuracy.*Received"):
        make_model().compile("sgd", metrics=[metric])


def test_a_metric_of_ones_own_still_gets_log_probabilities():
    def mean_log_prob(targets, log_probs):
        return log_probs

    model = make_model()
    tokens, targets, _ = data()
    model.compile("sgd", metrics=[mean_log_prob, Perplexity()])
    results = model.evaluate(tokens, targets, verbose=0, return_dict=True)
    np.testing.assert_allclose(np.exp(-results["mean_log_prob"]), results["perplexity"], rtol=1e-5)


def test_outside_of_language_models_it_takes_all_log_probabilities():
    rng = np.random.default_rng(0)
    log_probs = np.log(rng.dirichlet(np.ones(V), (7, T))).astype("float32")
    log_probs[0, 0] = -3.0  # all alike: the first comes first
    log_probs[0, 1] = np.nan
    log_probs[0, 4, -1] = 0  # the last word is no target of -1
    targets = rng.integers(0, V, (7, T))
    targets[0] = 1, 0, -100, V, -1
    weights = rng.random((7, T)).astype("float32")
    order = np.argsort(-log_probs, axis=-1, kind="stable")
    for k in (1, 2, 5):
        metric = TokenAccuracy(top_k=k)
        metric.update_state(
            ops.convert_to_tensor(targets), ops.convert_to_tensor(log_probs), weights
        )
        right = (order[..., :k] == targets[..., None]).any(-1)
        right[0, 1] = False
        np.testing.assert_allclose(metric.result(), np.average(right, weights=weights), rtol=1e-5)
        assert TokenAccuracy.from_config(metric.get_config()).top_k == k
    with pytest.raises(ValueError, match="all words"):
        TokenAccuracy().update_state(targets, log_probs[..., 0])
    with pytest.raises(ValueError, match="top_k"):
        TokenAccuracy(top_k=0)


def test_the_name_says_how_many_words_count():
    assert TokenAccuracy().name == "accuracy"
    assert TokenAccuracy(top_k=5).name == "top_5_accuracy"
    assert TokenAccuracy(top_k=5, name="five").name == "five"


def test_ranks_are_given_to_the_updates_inside_alone():
    targets, log_probs = np.zeros((2, 3), int), np.zeros((2, 3), "float32")
    metric = TokenAccuracy(top_k=2)
    with given_ranks(ops.convert_to_tensor([0, 1, 2, 3, 1, 2])):
        metric.update_state(targets, log_probs)
    assert float(metric.result()) == 0.5
    with pytest.raises(ValueError, match="all words"):
        metric.update_state(targets, log_probs)


def test_names_of_keras_accuracies_become_token_accuracies():
    from keras_drill.metrics.compiled_metrics import compiled_metrics

    mine = Perplexity()
    found = compiled_metrics(["acc", mine], ("SparseTopKCategoricalAccuracy",))
    assert [type(metric) for metric in found] == [TokenAccuracy, Perplexity, TokenAccuracy]
    assert found[1] is mine and [found[0].top_k, found[2].top_k] == [1, 5]
    assert [found[0].name, found[2].name] == ["acc", "SparseTopKCategoricalAccuracy"]
    assert compiled_metrics(mine, None) == [mine] and compiled_metrics(None, []) is None


def test_callbacks_know_which_way_is_better():
    assert (TokenAccuracy()._direction, Perplexity()._direction) == ("up", "down")
