"""The public loss against its formula in float64, and what it leaves out for frozen labels."""

import collections

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill import OutputLayer
from keras_drill.ops import linear_cross_entropy
from tests.gradients import value_and_gradients

B, T, V, D = 2, 5, 37, 13
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="counts operations of TensorFlow's graphs"
)


def make_case(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "hidden": rng.normal(size=(B, T, D)),
        "labels": rng.normal(size=(V, D)),
        "bias": rng.normal(size=V),
        "targets": rng.integers(0, V, (B, T)),
        "weights": rng.integers(1, 4, (B, T)) / 2.0,
    }


def oracle(hidden, labels, bias, targets, weights, reduction, smoothing=0.0, z_loss=0.0, cap=None):
    logits = hidden @ labels.T + bias
    logits = logits if cap is None else cap * np.tanh(logits / cap)
    lse = np.log(np.exp(logits).sum(-1))
    of_target = np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    losses = lse - (1 - smoothing) * of_target - smoothing * logits.mean(-1) + z_loss * lse**2
    losses = weights * losses
    if reduction == "none":
        return losses
    return losses.sum() / (weights.sum() if reduction == "mean" else 1.0)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"label_smoothing": 0.2},
        {"z_loss": 0.1},
        {"logit_soft_cap": 2.0, "label_smoothing": 0.1},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_frozen", [False, True])
def test_value_and_gradients(reduction, options, is_frozen):
    case = make_case()
    short = {"label_smoothing": "smoothing", "z_loss": "z_loss", "logit_soft_cap": "cap"}
    arguments = {short[name]: value for name, value in options.items()}

    def reference(hidden, labels, bias, weights):
        value = oracle(hidden, labels, bias, case["targets"], weights, reduction, **arguments)
        return np.sum(value * np.arange(1, 11).reshape(B, T)) if reduction == "none" else value

    names = ["hidden", "bias", "weights"] + ([] if is_frozen else ["labels"])

    def function(*tensors):
        given = {**case, **dict(zip(names, tensors, strict=True))}
        loss = linear_cross_entropy(
            given["hidden"],
            given["labels"],
            case["targets"],
            given["bias"],
            sample_weight=given["weights"],
            reduction=reduction,
            label_gradient=False if is_frozen else None,
            tile_size=3,
            **options,
        )
        return ops.sum(loss * np.arange(1, 11).reshape(B, T)) if reduction == "none" else loss

    if keras.backend.backend() == "jax":
        case = {k: x.astype("float32") if x.dtype == "float64" else x for k, x in case.items()}
    given = [case[name] for name in names]
    value, _, *gradients = value_and_gradients(function, [], *given)
    exact = {k: x.astype("float64") if x.dtype != "int64" else x for k, x in case.items()}
    order = ("hidden", "labels", "bias", "weights")
    precision = 1e-9 if case["hidden"].dtype == np.float64 else 2e-5
    np.testing.assert_allclose(value, reference(*(exact[n] for n in order)), rtol=precision)
    rng = np.random.default_rng(5)
    for name, gradient in zip(names, gradients, strict=True):
        direction = rng.normal(size=exact[name].shape)
        step = 1e-6
        ends = []
        for sign in (1, -1):
            moved = {**exact, name: exact[name] + sign * step * direction}
            ends.append(reference(*(moved[n] for n in order)))
        slope = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=2e-4, atol=1e-6)


def test_ignored_tokens_and_weights():
    case = make_case()
    targets = case["targets"].copy()
    targets[0, :2] = -100
    hidden = np.where((targets < 0)[..., None], np.nan, case["hidden"]).astype("float32")
    counted = (targets >= 0).astype("float64")
    expected = oracle(
        case["hidden"], case["labels"], case["bias"], case["targets"], counted, "mean"
    )
    arguments = (hidden, case["labels"].astype("float32"), targets, case["bias"].astype("float32"))
    loss = linear_cross_entropy(*arguments, ignore_index=-100)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    loss = linear_cross_entropy(*arguments, sample_weight=np.array([0.0, 3.0]), ignore_index=-100)
    rows = oracle(
        case["hidden"], case["labels"], case["bias"], case["targets"], np.ones((B, T)), "none"
    )
    np.testing.assert_allclose(loss, rows[1].mean(), rtol=1e-5)
    nothing = linear_cross_entropy(*arguments, sample_weight=np.zeros((B, T)))
    assert float(nothing) == 0
    empty = linear_cross_entropy(
        hidden[:0], arguments[1], targets[:0], ignore_index=-100, reduction="none"
    )
    assert tuple(empty.shape) == (0, T)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_keeps_the_labels_gradient_in_theirs(dtype):
    case = {k: x.astype("float32") for k, x in make_case().items() if k != "targets"}
    targets = make_case()["targets"]

    def function(hidden, labels):
        return linear_cross_entropy(ops.cast(hidden, dtype), labels, targets)

    value, _, _, d_labels = value_and_gradients(function, [], case["hidden"], case["labels"])
    exact = oracle(case["hidden"], case["labels"], np.zeros(V), targets, np.ones((B, T)), "mean")
    np.testing.assert_allclose(value, exact, rtol=2e-2)
    assert value.dtype == d_labels.dtype == np.float32


def test_variables_that_do_not_train_are_frozen():
    case = make_case()
    labels = keras.Variable(case["labels"].astype("float32"), trainable=False)

    def function(hidden):
        return linear_cross_entropy(hidden, labels, case["targets"])

    _, _, d_hidden = value_and_gradients(function, [], case["hidden"].astype("float32"))
    labels.trainable = True
    _, _, expected = value_and_gradients(function, [], case["hidden"].astype("float32"))
    np.testing.assert_allclose(d_hidden, expected, rtol=1e-6)


def operations(function, *shapes):
    """How often each kind of operation is in the graph of a function's loss and gradients."""
    import tensorflow as tf

    graph = tf.function(function).get_concrete_function(
        *[tf.TensorSpec(shape, "float32") for shape in shapes]
    )
    nodes = list(graph.graph.as_graph_def().node)
    for inner in graph.graph.as_graph_def().library.function:
        nodes += inner.node_def
    return collections.Counter(node.op for node in nodes)


def gradients_of(head, labels, is_layer):
    """A function of hidden states, whose results are all the gradients that are wanted."""
    import tensorflow as tf

    targets = np.arange(23) % V

    def function(hidden):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            if is_layer:
                loss = head.loss(hidden, targets)
            else:
                loss = linear_cross_entropy(hidden, labels, targets, tile_size=4)
        return tape.gradient(loss, [hidden, *([labels.value] if labels.trainable else [])])

    return function


@pytest.mark.slow
@on_tensorflow
@pytest.mark.parametrize("is_layer", [False, True])
def test_frozen_labels_save_a_product_and_the_sum(is_layer):
    counts = {}
    for is_frozen in (False, True):
        embedding = keras.layers.Embedding(V, D, trainable=not is_frozen)
        embedding.build(None)
        head = OutputLayer(V, embedding=embedding, use_bias=False, tile_size=4)
        head.build((None, D))
        assert head.labels_are_frozen == is_frozen

        function = gradients_of(head, embedding.embeddings, is_layer)
        counts[is_frozen] = operations(function, (23, D))
    products = {k: sum(c[op] for op in ("MatMul", "Einsum")) for k, c in counts.items()}
    assert products[False] - products[True] == 1
    assert counts[False]["InplaceAdd"] > 0
    assert counts[True]["InplaceAdd"] == 0


def test_frozen_embeddings_and_what_thaws_them():
    embedding = keras.layers.Embedding(V, D, trainable=False)
    head = keras_drill.DrillOutput(V, embedding, depth=1)
    head.build((None, D))
    assert not head.labels_are_frozen
    head.label_encoder.trainable = False
    assert head.labels_are_frozen
    embedding.trainable = True
    assert not head.labels_are_frozen
    senses = keras_drill.KernelizedBayesianSoftmax(V, embedding_dim=D, trainable=False)
    senses.build((None, D))
    assert not senses.labels_are_frozen
    own = OutputLayer(V)
    own.build((None, D))
    assert not own.labels_are_frozen
    own.trainable = False
    assert own.labels_are_frozen


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": np.zeros((B, T, D + 1), "float32")}, r"`hidden` must be \[..., 13\]"),
        ({"labels": np.zeros((V,), "float32")}, r"`labels` must be a matrix"),
        ({"labels": np.zeros((V, D), "int32")}, r"`labels` must hold floats"),
        ({"targets": np.zeros((B, T + 1), "int32")}, "`targets` must have the shape"),
        ({"targets": np.full((B, T), V)}, "`targets` must be word indices"),
        ({"bias": np.zeros(V + 1, "float32")}, "`bias` must be"),
        ({"reduction": "average"}, "`reduction` must be"),
        ({"label_smoothing": 1.0}, "`label_smoothing` must be"),
        ({"logit_soft_cap": 0.0}, "`logit_soft_cap` must be"),
        ({"z_loss": -1.0}, "`z_loss` must not be"),
        ({"sample_weight": np.zeros(T + 2)}, "`sample_weight` must have"),
    ],
    ids=lambda x: str(x)[:30],
)
def test_what_is_refused(change, message):
    case = {
        "hidden": np.zeros((B, T, D), "float32"),
        "labels": np.zeros((V, D), "float32"),
        "targets": np.zeros((B, T), "int32"),
    }
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        linear_cross_entropy(**{**case, **change})
