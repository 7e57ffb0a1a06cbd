"""The fused loss against a materialised float64 oracle."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.fused_loss import label_blocks, tiling
from keras_drill.fused_loss import walk as tile_walk
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions, tile_count
from keras_drill.fused_loss.label_shard import LabelShard
from keras_drill.fused_loss.losses import token_losses, weighted_loss
from keras_drill.fused_loss.token_tiles import TokenTiles
from keras_drill.scores import InnerProduct, KerBSKernel
from tests.gradients import value_and_gradients

N, V, D, K = 11, 37, 13, 3


def log_sum_exp(x, axis):
    top = x.max(axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis, keepdims=True)) + top


def oracle(contexts, log_priors, labels, bias, targets, smoothing=0.0, z_loss=0.0, cap=None):
    """Losses `[N]` in float64, from the whole score tensor."""
    scores = np.einsum("nkd,vd->nkv", contexts, labels) + bias
    if cap is not None:
        scores = cap * np.tanh(scores / cap)
    normalizer = log_sum_exp(scores, -1)
    log_probs = log_sum_exp(scores - normalizer + log_priors[..., None], 1)[:, 0]
    targeted = log_probs[np.arange(len(targets)), targets]
    losses = -(1 - smoothing) * targeted - smoothing * log_probs.mean(-1)
    return losses + z_loss * np.square(normalizer[..., 0]).mean(-1)


def make_case(seed=0, n=N, v=V, d=D, k=1, scale=1.0):
    rng = np.random.default_rng(seed)
    return {
        "contexts": scale * rng.normal(size=(n, k, d)),
        "log_priors": np.log(rng.dirichlet(np.ones(k), n)),
        "labels": rng.normal(size=(v, d)),
        "bias": rng.normal(size=v),
        "targets": rng.integers(0, v, n),
    }


def finite_differences(function, array, entries, step=1e-6):
    """Central differences of `function()` for some entries of `array`, changed in place."""
    slopes = []
    for entry in entries:
        kept = array[entry]
        array[entry] = kept + step
        above = function()
        array[entry] = kept - step
        slopes.append((above - function()) / (2 * step))
        array[entry] = kept
    return np.array(slopes)


def fused(case, weights=None, training=True, dtype="float32", loss=weighted_loss, **options):
    """Loss and gradients for contexts, log-priors (if K > 1), labels and bias."""
    mixture = case["contexts"].shape[1] > 1
    names = (
        ["contexts", "log_priors", "labels", "bias"] if mixture else ["contexts", "labels", "bias"]
    )

    def function(*tensors):
        given = dict(zip(names, tensors, strict=True))
        inputs = WalkInputs(
            given["contexts"],
            given.get("log_priors"),
            given["labels"],
            given["bias"],
            (),
            ops.convert_to_tensor(case["targets"][:, None]),
        )
        walk_options = WalkOptions(InnerProduct(), **{"compute_dtype": dtype, **options})
        tensor = None if weights is None else ops.convert_to_tensor(weights, dtype)
        if loss is weighted_loss:
            return loss(inputs, walk_options, tensor, training)[0]
        return ops.sum(loss(inputs, walk_options, tensor)[0])

    value, _, *gradients = value_and_gradients(
        function, [], *[case[name].astype(dtype) for name in names]
    )
    return value, dict(zip(names, gradients, strict=True))


def analytic(case, weights, smoothing=0.0):
    """Exact float64 gradients of the plain K = 1 loss, by the textbook formula."""
    hidden, labels = case["contexts"][:, 0], case["labels"]
    scores = hidden @ labels.T + case["bias"]
    probabilities = np.exp(scores - log_sum_exp(scores, -1))
    target = (1 - smoothing) * np.eye(len(labels))[case["targets"]] + smoothing / len(labels)
    derivative = weights[:, None] * (probabilities - target)
    return {
        "contexts": (derivative @ labels)[:, None],
        "labels": derivative.T @ hidden,
        "bias": derivative.sum(0),
    }


def assert_close(actual, expected, tolerance=1e-5):
    scale = max(np.abs(expected).max(), 1e-12)
    np.testing.assert_allclose(actual / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("tile_size", [1, 4, N, N + 6])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("training", [True, False])
def test_loss_and_every_gradient_match_the_oracle(tile_size, smoothing, training):
    case = make_case()
    weights = np.random.default_rng(1).random(N)
    options = {"tile_size": tile_size, "label_smoothing": smoothing}
    value, gradients = fused(case, weights, training, **options)
    assert_close(value, weights @ oracle(**case, smoothing=smoothing))
    for name, expected in analytic(case, weights, smoothing).items():
        assert_close(gradients[name], expected)


@pytest.mark.parametrize("shape", [(1, 2, 1), (2, 3, 5), (7, 101, 3), (23, 5, 17), (53, 211, 29)])
def test_odd_shapes(shape):
    n, v, d = shape
    case = make_case(n=n, v=v, d=d)
    value, gradients = fused(case, None, tile_size=5)
    assert_close(value, oracle(**case).sum())
    for name, expected in analytic(case, np.ones(n)).items():
        assert_close(gradients[name], expected)


@pytest.mark.parametrize(
    "options",
    [
        {"z_loss": 0.01},
        {"cap": 3.0},
        {"smoothing": 0.1, "z_loss": 0.01},
        {"smoothing": 0.1, "z_loss": 0.01, "cap": 3.0},
        {"mixture": True},
        {"mixture": True, "z_loss": 0.1, "cap": 2.0},
    ],
    ids=str,
)
def test_options_and_mixtures_match_finite_differences(options):
    case = make_case(k=K if options.pop("mixture", False) else 1)
    weights = np.random.default_rng(1).random(N)
    names = {"smoothing": "label_smoothing", "cap": "logit_soft_cap", "z_loss": "z_loss"}
    value, gradients = fused(
        case, weights, tile_size=4, **{names[name]: x for name, x in options.items()}
    )
    assert_close(value, weights @ oracle(**case, **options))
    rng = np.random.default_rng(2)
    for name, gradient in gradients.items():
        array = case[name]
        flat = rng.choice(array.size, min(array.size, 29), replace=False)
        entries = [np.unravel_index(i, array.shape) for i in flat]
        slopes = finite_differences(lambda: weights @ oracle(**case, **options), array, entries)
        actual = np.array([gradient[entry] for entry in entries])
        np.testing.assert_allclose(actual, slopes, atol=2e-5 * np.abs(gradient).max())


def test_tokens_of_weight_zero_are_not_looked_at():
    case = make_case()
    weights = np.random.default_rng(1).random(N)
    weights[[0, 4, 5, N - 1]] = 0
    expected_value = weights @ oracle(**case)
    expected = analytic(case, weights)
    case["contexts"][[0, 4, 5, N - 1]] = np.nan
    for tile_size in (1, 4, N):
        value, gradients = fused(case, weights, tile_size=tile_size)
        assert_close(value, expected_value)
        for name in ("labels", "bias", "contexts"):
            assert_close(gradients[name], expected[name])
        assert not gradients["contexts"][weights == 0].any()


def test_a_batch_of_weight_zero_costs_nothing_and_is_zero():
    value, gradients = fused(make_case(), np.zeros(N), tile_size=4)
    assert value == 0
    for gradient in gradients.values():
        assert not gradient.any()


def test_repeated_targets_add_up():
    case = make_case()
    case["targets"][:] = 5
    value, gradients = fused(case, tile_size=4)
    assert_close(value, oracle(**case).sum())
    assert_close(gradients["labels"], analytic(case, np.ones(N))["labels"])


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_large_scores_neither_overflow_nor_lose_the_loss(scale):
    case = make_case(scale=scale)
    value, gradients = fused(case, tile_size=4)
    assert_close(value, oracle(**case).sum())
    for name, expected in analytic(case, np.ones(N)).items():
        assert_close(gradients[name], expected, 1e-4)  # float32 scores of 1e5 are rounded to 1e-2


@pytest.mark.parametrize("loss", [weighted_loss, token_losses])
def test_weights_may_be_negative_and_have_gradients(loss):
    case = make_case()
    weights = np.random.default_rng(1).normal(size=N)

    def function(weights):
        inputs = WalkInputs(
            case["contexts"].astype("float32"),
            None,
            case["labels"].astype("float32"),
            None,
            (),
            case["targets"][:, None],
        )
        losses = loss(inputs, WalkOptions(InnerProduct(), tile_size=4), weights)[0]
        return ops.sum(losses * upstream)  # not the same for all, but for the sum's

    upstream = 3.0 if loss is weighted_loss else np.arange(N, dtype="float32")
    value, _, gradient = value_and_gradients(function, [], weights.astype("float32"))
    losses = upstream * oracle(**{**case, "bias": np.zeros(V)})
    assert_close(value, weights @ losses)
    assert_close(gradient, losses)


def test_token_losses_have_the_gradients_of_the_sum():
    case = make_case()
    weights = np.random.default_rng(1).random(N)
    value, gradients = fused(case, weights, loss=token_losses, tile_size=4)
    assert_close(value, weights @ oracle(**case))
    for name, expected in analytic(case, weights).items():
        assert_close(gradients[name], expected)


@pytest.mark.parametrize("dtype, tolerance", [("bfloat16", 3e-2), ("float16", 4e-3)])
def test_half_precision_products_accumulate_in_float32(dtype, tolerance):
    case = make_case(n=53, v=211, d=29)
    case["contexts"] *= 0.3
    hidden, labels = case["contexts"].astype("float32"), case["labels"].astype("float32")

    def function(hidden, labels):
        inputs = WalkInputs(hidden, None, labels, None, (), case["targets"][:, None])
        options = WalkOptions(InnerProduct(), compute_dtype=dtype, tile_size=4)
        return weighted_loss(inputs, options, np.full(53, 1e-3, "float32"))[0]

    value, _, d_hidden, d_labels = value_and_gradients(function, [], hidden, labels)
    case["bias"][:] = 0
    assert_close(value, 1e-3 * oracle(**case).sum(), tolerance / 3)
    expected = analytic(case, np.full(53, 1e-3))
    assert d_labels.dtype == "float32"
    assert_close(d_labels, expected["labels"], tolerance)
    assert_close(d_hidden, expected["contexts"], tolerance)


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_functions_and_dynamic_token_counts(jit_compile):
    import tensorflow as tf

    @tf.function(
        jit_compile=jit_compile,
        input_signature=[
            tf.TensorSpec([None, 1, D], tf.float64),
            tf.TensorSpec([None, 1], tf.int64),
            tf.TensorSpec([None], tf.float64),
        ],
    )
    def loss_and_gradient(contexts, targets, weights):
        with tf.GradientTape() as tape:
            tape.watch(contexts)
            inputs = WalkInputs(contexts, None, tf.constant(labels), tf.constant(bias), (), targets)
            options = WalkOptions(InnerProduct(), compute_dtype="float64", tile_size=4)
            loss = weighted_loss(inputs, options, weights)[0]
        return loss, tape.gradient(loss, contexts)

    base = make_case()
    labels, bias = base["labels"], base["bias"]
    for n in (1, 7, 11):
        case = {**make_case(n=n), "labels": labels, "bias": bias}
        weights = np.random.default_rng(n).random(n)
        weights[n // 2] = 0
        value, gradient = loss_and_gradient(case["contexts"], case["targets"][:, None], weights)
        assert_close(value, weights @ oracle(**case), 1e-12)
        assert_close(gradient, analytic(case, weights)["contexts"], 1e-12)
    assert loss_and_gradient.experimental_get_tracing_count() == 1


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers")
@pytest.mark.parametrize("jit_compile", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"label_smoothing": 0.1},
        {"z_loss": 0.1},
        {"logit_soft_cap": 2.0},
    ],
    ids=str,
)
def test_blocks_of_labels_change_nothing(jit_compile, options, monkeypatch):
    import tensorflow as tf

    case = make_case(k=1 if "label_smoothing" in options else K)
    weights = np.random.default_rng(1).random(N)
    expected_value, expected = fused(case, weights, **options)
    monkeypatch.setattr(tile_walk, "FUSE_FROM_SCORES", 0)
    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 4 * 19 * D)  # blocks of 20 and 17
    monkeypatch.setattr(label_blocks.MatrixSum, "rows_per_chunk", 4)
    names = list(expected)

    @tf.function(jit_compile=jit_compile)
    def compiled(tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            given = dict(zip(names, tensors, strict=True))
            given = [given.get(name) for name in ("contexts", "log_priors", "labels", "bias")]
            inputs = WalkInputs(*given, (), tf.constant(case["targets"][:, None]))
            walk_options = WalkOptions(InnerProduct(), tile_size=4, **options)
            value = weighted_loss(inputs, walk_options, tf.constant(weights, "float32"))[0]
        return value, tape.gradient(value, tensors)

    value, gradients = compiled([tf.constant(case[name], "float32") for name in names])
    assert_close(value, expected_value)
    for name, gradient in zip(names, gradients, strict=True):
        assert_close(np.asarray(gradient), expected[name])


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="float64")
@pytest.mark.parametrize("k", [1, K])
@pytest.mark.parametrize("cap", [None, 2.0])
def test_several_columns_of_inner_products_are_those_of_a_kernel_without_width(k, cap):
    case, rng = make_case(k=k), np.random.default_rng(1)
    columns = np.stack([rng.choice(V, 4, replace=False) for _ in range(N)])
    mask = rng.random((N, 4)) < 0.6
    mask[:, 0] = True
    weights = rng.random(N)

    def results(score, parameters):
        def function(contexts, log_priors, labels, bias):
            given = (contexts, log_priors if k > 1 else None, labels, bias, parameters)
            inputs = WalkInputs(*given, np.where(mask, columns, 0), ops.convert_to_tensor(mask))
            options = {"tile_size": 4, "z_loss": 0.1, "logit_soft_cap": cap}
            options = WalkOptions(score, compute_dtype="float64", **options)
            value = weighted_loss(inputs, options, ops.convert_to_tensor(weights))[0]
            return value + 0 * ops.sum(log_priors)

        names = ("contexts", "log_priors", "labels", "bias")
        return value_and_gradients(function, [], *[case[name] for name in names])

    theta = ops.zeros((V,), "float64")
    expected = results(KerBSKernel(), (theta,))
    for actual, wanted in zip(results(InnerProduct(), ()), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-12)


def test_the_small_gradient_of_a_sure_token_is_precise():
    case = make_case(n=3, v=5)
    targets = case["labels"][case["targets"]]
    case["contexts"] = (16 * targets / np.square(targets).sum(-1, keepdims=True))[:, None]
    expected = analytic(case, np.ones(3))
    assert np.abs(expected["contexts"]).max() < 1e-2
    for name, gradient in fused(case, np.ones(3))[1].items():
        assert_close(gradient, expected[name])


@pytest.mark.parametrize("compute_dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"z_loss": 0.1}, {"logit_soft_cap": 2.0}], ids=str
)
def test_half_precision_products_give_nearly_the_same(options, compute_dtype):
    case, weights = make_case(), np.random.default_rng(1).random(N)
    value, gradients = fused(case, weights, compute_dtype=compute_dtype, **options)
    expected_value, expected = fused(case, weights, **options)
    assert_close(value, expected_value, 1e-2)
    for name, gradient in gradients.items():
        assert_close(gradient, expected[name], 4e-2)


@pytest.mark.usefixtures("tiles_of_a_cpu")
def test_tile_count_follows_size_or_memory():
    options = WalkOptions(InnerProduct(), tile_size=4)
    assert tile_count(11, 1, V, options) == 3
    assert tile_count(0, 1, V, options) == 1
    # A tile of 10 tokens takes 10 * 4 * 37 bytes.
    assert tile_count(11, 1, V, WalkOptions(InnerProduct(), tile_bytes=1480)) == 2
    assert tile_count(11, 5, V, WalkOptions(InnerProduct(), tile_bytes=1480)) == 6
    assert tile_count(11, 1, V, WalkOptions(InnerProduct(), tile_bytes=1)) == 11


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX knows every shape")
def test_tiles_of_unknown_length_are_little_larger_than_the_tokens():
    """The memory for a tile would hold a million tokens where words are few."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None, 1, D], tf.float32)])
    def size_of_tiles(contexts):
        targets = tf.zeros([tf.shape(contexts)[0], 1], tf.int32)
        inputs = WalkInputs(contexts, None, tf.zeros([V, D]), None, (), targets)
        options = WalkOptions(InnerProduct())
        tiles = TokenTiles(inputs, options, None, with_gradients=True, shard=LabelShard(V, V))
        return tiles.size * tiles.num_tiles

    padded = [int(size_of_tiles(tf.zeros([n, 1, D]))) for n in range(1, 2000, 7)]
    for n, size in zip(range(1, 2000, 7), padded, strict=True):
        assert n <= size <= n * 9 / 8
    assert len(set(padded)) < 70  # something is compiled for each


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="sizes that graphs learn late")
@pytest.mark.parametrize("limit", [37, 41, 64])
def test_no_tile_of_a_late_size_is_larger_than_its_limit(limit):
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, 1, D))])
    def size_of_a_tile(contexts):
        targets = tf.zeros([tf.shape(contexts)[0], 1], tf.int32)
        inputs = WalkInputs(contexts, None, tf.zeros([V, D]), None, (), targets)
        options = WalkOptions(InnerProduct(), tile_size=limit)
        tiles = TokenTiles(inputs, options, None, with_gradients=True, shard=LabelShard(V, V))
        return tiles.size

    sizes = [int(size_of_a_tile(tf.zeros([n, 1, D]))) for n in range(1, 5 * limit)]
    assert max(sizes) == limit
