"""Labels that are frozen: one pass, the same losses and gradients, no scores in memory."""

import collections
import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.fused_loss import label_blocks, tiling
from keras_drill.fused_loss import walk as tile_walk
from keras_drill.fused_loss.frozen_labels import FrozenLabels
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.linear_cross_entropy import linear_cross_entropy
from keras_drill.fused_loss.losses import token_losses, weighted_loss
from keras_drill.ops.device_kind import is_accelerator
from keras_drill.scores import InnerProduct
from tests.fused_loss.test_fused_loss import D, K, N, V, analytic, assert_close, make_case, oracle
from tests.gradients import value_and_gradients

HOW = [("eager", 4)]
if keras.backend.backend() == "tensorflow":
    HOW = [("eager", None), ("graph", 4), ("xla", None)]
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's graphs"
)


@pytest.fixture
def blocks(monkeypatch):
    """Blocks of 4 to 8 labels, compiled, so that there are many."""
    monkeypatch.setattr(tile_walk, "FUSE_FROM_SCORES", 0)
    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 4 * 8 * D)
    monkeypatch.setattr(label_blocks.MatrixSum, "rows_per_chunk", 4)


@pytest.fixture
def passes(monkeypatch):
    """Counts the tiles whose gradients needed no second pass."""
    found, original = [], FrozenLabels.hidden_gradient

    def counted(self, *arguments):
        found.append(self)
        return original(self, *arguments)

    monkeypatch.setattr(FrozenLabels, "hidden_gradient", counted)
    return found


def gradients(case, weights, columns=None, mask=None, loss=weighted_loss, how="eager", **options):
    """The loss, and its gradients for contexts and log-priors."""
    columns = case["targets"][:, None] if columns is None else columns
    log_priors = case["log_priors"] if case["contexts"].shape[1] > 1 else None
    options = WalkOptions(InnerProduct(), **options)

    def function(contexts, log_priors):
        priors = log_priors if case["contexts"].shape[1] > 1 else None
        labels = ops.convert_to_tensor(case["labels"].astype("float32"))
        inputs = WalkInputs(contexts, priors, labels, None, (), columns, mask)
        losses = loss(inputs, options, ops.convert_to_tensor(weights, "float32"))[0]
        return ops.sum(losses) + 0.0 * ops.sum(log_priors)

    if how != "eager":
        import tensorflow as tf

        function = tf.function(function, jit_compile=how == "xla")
    log_priors = np.zeros(1) if log_priors is None else log_priors
    value, _, *found = value_and_gradients(
        function, [], case["contexts"].astype("float32"), log_priors.astype("float32")
    )
    return value, *found


OPTIONS = [
    {},
    {"label_smoothing": 0.1},
    {"z_loss": 0.1},
    {"logit_soft_cap": 2.0},
    {"label_smoothing": 0.1, "z_loss": 0.1},
    {"k": K},
    {"k": K, "z_loss": 0.1, "logit_soft_cap": 2.0},
    {"columns": 4},
    {"columns": 4, "k": K},
]


def case_of(options, how, tile_size):
    is_slow = how == "graph" or (how == "xla" and not ("k" in options and len(options) > 1))
    return pytest.param(options, how, tile_size, marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "how", "tile_size"),
    [case_of(options, *how) for options in OPTIONS for how in HOW],
    ids=str,
)
def test_gradients_are_those_of_labels_that_train(options, how, tile_size, blocks, passes):
    options = dict(options)
    case, rng = make_case(k=options.pop("k", 1)), np.random.default_rng(1)
    weights = rng.normal(size=N)
    weights[[0, 5]] = 0
    if "columns" in options:
        num_columns = options.pop("columns")
        options["columns"] = np.stack([rng.choice(V, num_columns, False) for _ in range(N)])
        options["mask"] = rng.random((N, num_columns)) < 0.6
        options["mask"][:, 0] = True
    expected = gradients(case, weights, tile_size=4, **options)
    assert not passes
    found = gradients(
        case, weights, tile_size=tile_size, labels_are_frozen=True, how=how, **options
    )
    assert passes
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 2e-6)


@pytest.mark.parametrize("loss", [weighted_loss, token_losses])
def test_the_oracle(loss, blocks, passes):
    case, weights = make_case(), np.random.default_rng(1).random(N)
    case["bias"][:] = 0
    value, d_contexts, _ = gradients(case, weights, loss=loss, labels_are_frozen=True)
    assert passes
    assert_close(value, weights @ oracle(**case))
    assert_close(d_contexts, analytic(case, weights)["contexts"])


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("scale", [1.0, 3e4])
def test_tops_that_rise_or_fall_from_block_to_block(order, scale, blocks, passes):
    """What is added up is relative to the largest score so far."""
    case = make_case()
    case["bias"][:] = 0
    direction = np.ones(D) / np.sqrt(D)
    case["contexts"] = scale * (case["contexts"] * 0.1 + direction)
    case["labels"] = case["labels"] * 0.01 + np.linspace(-9, 9, V)[::order, None] * direction
    weights = np.ones(N)
    value, d_contexts, _ = gradients(case, weights, labels_are_frozen=True)
    assert passes and np.isfinite(d_contexts).all()
    assert_close(value, oracle(**case).sum())
    # Scores of 1e5 are rounded to 1e-2.
    assert_close(d_contexts, analytic(case, weights)["contexts"], 1e-5 if scale == 1 else 3e-2)


@pytest.mark.parametrize(
    ("options", "bias"), [({"with_ranks": True}, None), ({}, np.zeros(V, "float32"))], ids=str
)
def test_what_needs_the_scores_twice_keeps_them(options, bias, passes):
    case = make_case()
    inputs = WalkInputs(
        ops.convert_to_tensor(case["contexts"].astype("float32")),
        None,
        ops.convert_to_tensor(case["labels"].astype("float32")),
        bias,
        (),
        case["targets"][:, None],
    )
    options = WalkOptions(InnerProduct(), labels_are_frozen=True, **options)
    *_, found = tile_walk.walk(inputs, options, with_gradients=True)
    assert not passes
    if bias is None:
        case["bias"][:] = 0
    expected = analytic({**case, "bias": np.zeros(V)}, np.ones(N))
    assert_close(ops.convert_to_numpy(found[0]), expected["contexts"])
    if bias is not None:
        assert_close(ops.convert_to_numpy(found[3]), expected["bias"])


@pytest.mark.parametrize(("dtype", "is_at_once"), [("bfloat16", True), ("float16", False)])
def test_half_precision(dtype, is_at_once, blocks, passes):
    """The sums of exponentials that float16 could not hold are not made in it."""
    case, weights = make_case(n=53, v=211), np.full(53, 1e-3)
    case["bias"][:] = 0
    case["contexts"] *= 0.3
    value, d_contexts, _ = gradients(case, weights, labels_are_frozen=True, compute_dtype=dtype)
    assert bool(passes) == is_at_once
    assert_close(value, weights @ oracle(**case), 1e-2)
    assert_close(d_contexts, analytic(case, weights)["contexts"], 3e-2)


@pytest.mark.parametrize("num_tokens", [0, 1])
def test_few_tokens(num_tokens, blocks):
    case = make_case(n=num_tokens)
    value, d_contexts, _ = gradients(case, np.ones(num_tokens), labels_are_frozen=True)
    assert d_contexts.shape == (num_tokens, 1, D) and np.isfinite(value)


def nodes_of(function, *arguments):
    """Nodes of all functions that the graph of a `tf.function` consists of, by function."""
    graph = function.get_concrete_function(*arguments).graph.as_graph_def()
    return [list(graph.node), *(list(inner.node_def) for inner in graph.library.function)]


def ancestors(nodes):
    """The names of all nodes that have been computed before each node."""
    inputs = {node.name: {name.lstrip("^").split(":")[0] for name in node.input} for node in nodes}
    found: dict[str, set] = collections.defaultdict(set)

    def visit(name):
        if name not in found and name in inputs:
            found[name] = set(inputs[name])
            for earlier in inputs[name]:
                found[name] |= visit(earlier)
        return found[name]

    for name in inputs:
        visit(name)
    return inputs, found


@pytest.mark.slow
@on_tensorflow
@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_a_block_waits_for_all_that_reads_the_last_one(is_frozen, training, monkeypatch):
    """Otherwise the products of all blocks are in memory at once."""
    import tensorflow as tf

    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 4 * 8 * D)
    monkeypatch.setattr(label_blocks.MatrixSum, "rows_per_chunk", 4)
    case = make_case()

    @tf.function
    def function(contexts, labels):
        inputs = WalkInputs(contexts, None, labels, None, (), case["targets"][:, None])
        options = WalkOptions(InnerProduct(), labels_are_frozen=is_frozen, tile_size=4)
        return tile_walk.walk(inputs, options, with_gradients=training)[0]

    arguments = [tf.TensorSpec(case[x].shape, tf.float32) for x in ("contexts", "labels")]
    checked = 0
    for nodes in nodes_of(function, *arguments):
        products = [node.name for node in nodes if node.op == "Einsum"]
        inputs, before = ancestors(nodes)
        for product, following in itertools.pairwise(products):
            readers = {name for name, names in inputs.items() if product in names}
            assert readers <= before[following], readers - before[following]
            checked += len(readers)
    assert checked >= 5


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="what JAX' compiler does")
@pytest.mark.skipif(is_accelerator(), reason="blocks of labels are for CPUs")
def test_compilers_neither_copy_the_labels_nor_hold_all_blocks(monkeypatch):
    """Each takes 4 MiB, a block 1/16 of it."""
    import jax

    monkeypatch.setattr(tiling, "LABEL_BLOCK_BYTES", 2**18)
    shapes = [(128, 128), (8192, 128)]

    def loss(hidden, labels):
        targets = np.arange(len(hidden))
        return linear_cross_entropy(hidden, labels, targets, label_gradient=False)

    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    compiled = jax.jit(jax.value_and_grad(loss)).lower(*arguments).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 2**21
