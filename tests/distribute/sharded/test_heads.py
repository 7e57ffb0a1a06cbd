"""Loss and gradients of every output layer on eight devices are those on one."""

import functools

import jax
import keras
import numpy as np
import pytest

from benchmarks.collectives import read_collectives
from keras_drill.fused_loss.frozen_labels import FrozenLabels
from keras_drill.ops import linear_cross_entropy
from tests.distribute.sharded.heads import (
    HEADS,
    MESHES,
    B,
    D,
    T,
    V,
    loss_and_gradients,
    make_embedding,
    make_head,
    place,
    set_mesh,
)

pytestmark = pytest.mark.slow

# Tiles of 7 tokens, of which devices have unequal numbers that count.
OPTIONS = {
    "plain": ({"tile_size": 7}, {}),
    "smooth": ({"tile_size": 7}, {"label_smoothing": 0.1}),
    "capped": (
        {"tile_size": 7, "logit_soft_cap": 5.0, "z_loss": 0.01},
        {"label_smoothing": 0.2, "reduction": "mean_with_sample_weight"},
    ),
    "half": ({"dtype": "mixed_bfloat16", "tile_size": 7}, {}),
}


def batch(rows=B, vocabulary_size=V):
    rng = np.random.default_rng(5)
    hidden = rng.normal(size=(rows, T, D)).astype("float32")
    targets = rng.integers(0, vocabulary_size, (rows, T), "int32")
    weights = rng.uniform(0.5, 2, (rows, T)).astype("float32") * (rng.random((rows, T)) < 0.7)
    weights[:3] = 0  # all that some devices have
    targets[weights == 0] = -100
    return hidden, targets, weights


@functools.cache
def on_one_device(name, options):
    set_mesh(None)
    arguments, of_loss = OPTIONS[options]
    return run(name, arguments, of_loss)


def run(name, arguments, of_loss):
    return loss_and_gradients(make_head(name, **arguments), *batch(), **of_loss)


def assert_close(found, expected, tolerance=1e-5):
    def compare(path, a, b):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=str(path))

    jax.tree_util.tree_map_with_path(compare, found, expected)


@pytest.mark.parametrize(
    "name, mesh",
    [
        (name, mesh)
        for name in HEADS
        for mesh in MESHES
        if mesh != (8, 1) or name in ("softmax", "drill", "tied_kerbs", "described")
    ],
)
def test_every_head_on_every_mesh(name, mesh):
    expected = on_one_device(name, "plain")
    set_mesh(mesh)
    assert_close(run(name, *OPTIONS["plain"]), expected)


@pytest.mark.parametrize(
    "name, options",
    [
        *((name, "smooth") for name in ("softmax", "drill", "mixture", "kerbs")),
        *((name, "capped") for name in ("softmax", "mixture", "tied_kerbs")),
        *((name, "half") for name in ("tied", "drill", "kerbs")),
    ],
)
def test_options(name, options):
    expected = on_one_device(name, options)
    set_mesh((2, 4))
    # bfloat16 rounds what is summed up in another order.
    assert_close(run(name, *OPTIONS[options]), expected, 2e-2 if options == "half" else 1e-5)


@pytest.mark.parametrize("mesh", [None, (2, 4), (8, 1)], ids=str)
@pytest.mark.parametrize("name", ["softmax", "drill", "mixture"])
def test_rows_that_fill_up_are_no_words(name, mesh):
    """43 words on 48 rows, of which the last shard of eight has one, are 43 words on 43 rows."""
    of_loss = {"label_smoothing": 0.1}
    set_mesh(None)
    head = make_head(name, 43, 43, tile_size=7)
    expected = loss_and_gradients(head, *batch(vocabulary_size=43), **of_loss)
    values = [np.asarray(v.value) for v in head.trainable_variables]
    set_mesh(mesh)
    padded = make_head(name, 43, 48, tile_size=7, pad_labels_to=48)
    for variable, value in zip(padded.trainable_variables, values, strict=True):
        filled = np.asarray(variable.value).copy()
        filled[: len(value)] = value
        variable.assign(filled)
    loss, found, (gradients, of_hidden) = loss_and_gradients(
        padded, *batch(vocabulary_size=43), **of_loss
    )
    kept = []
    for gradient, value in zip(gradients, values, strict=True):
        assert not gradient[len(value) :].any()
        kept.append(gradient[: len(value)])
    assert_close([loss, found, (kept, of_hidden)], expected)


@pytest.mark.parametrize("name", ["softmax", "drill", "mixture", "kerbs"])
def test_log_probabilities(name):
    """All words', and a batch whose rows the devices cannot share evenly."""
    hidden, targets, weights = batch(rows=3)
    results = []
    for mesh in (None, (2, 4)):
        set_mesh(mesh)
        pads = {} if name == "kerbs" else {"pad_labels_to": 48}
        head = make_head(name, 48 if name == "kerbs" else 43, 48, **pads)
        targets = np.clip(targets, 0, 42)
        of_targets = head.log_prob(hidden, targets, weights)
        results.append([head(hidden), of_targets, *head.top_k(hidden, 3), head.folded()(hidden)])
    assert_close(*jax.tree.map(np.asarray, results))


@pytest.mark.parametrize("name", ["kerbs", "tied_kerbs"])
def test_terms_of_labels(name):
    """Made once for many steps of a search, they give what the head gives."""
    hidden, *_ = batch()
    results = []
    for mesh in (None, (2, 4)):
        set_mesh(mesh)
        head = make_head(name)
        terms = jax.jit(head.label_terms)()
        found = jax.jit(head.log_probs)(place(hidden), head.encoded_labels(), terms)
        np.testing.assert_allclose(found, head(hidden), atol=1e-5)
        results.append([found, *terms])
    assert_close(*jax.tree.map(np.asarray, results))


@pytest.mark.parametrize("name", ["tied", "drill"])
def test_a_quantised_embedding(name):
    results = []
    for mesh in (None, (2, 4)):
        set_mesh(mesh)
        head = make_head(name, tile_size=7)
        head.embedding.quantize("int8")
        results.append([*loss_and_gradients(head, *batch()), head(batch()[0])])
    assert_close(*jax.tree.map(np.asarray, results))


def test_linear_cross_entropy():
    """The loss as a function, of variables whose rows are split."""

    def run():
        hidden, targets, weights = (place(x) for x in batch())
        head = make_head("softmax")
        variables = [head.label_embeddings, head.bias]

        def loss(values, hidden):
            with keras.StatelessScope(zip(variables, values, strict=True)):
                return linear_cross_entropy(
                    hidden, variables[0], targets, variables[1], sample_weight=weights,
                    label_smoothing=0.1, tile_size=7,
                )  # fmt: skip

        values = [variable.value for variable in variables]
        compiled = jax.jit(jax.value_and_grad(loss, argnums=(0, 1))).lower(values, hidden).compile()
        kinds = {c.kind for c in read_collectives(compiled.as_text())}
        return jax.tree.map(np.asarray, compiled(values, hidden)), kinds

    results = []
    for mesh in (None, (2, 4)):
        set_mesh(mesh)
        results.append(run())
    (expected, none), (found, kinds) = results
    assert_close(found, expected)
    assert (none, kinds) == (set(), {"all-reduce"})


@pytest.mark.parametrize("mesh", [(2, 4), (8, 1)], ids=str)
@pytest.mark.parametrize("name", ["softmax", "mixture"])
def test_frozen_labels(name, mesh, monkeypatch):
    """43 words on 48 rows, of which no scores are kept."""
    passed = []
    monkeypatch.setattr(
        FrozenLabels,
        "hidden_gradient",
        lambda *x, original=FrozenLabels.hidden_gradient: passed.append(x) or original(*x),
    )

    def run():
        head = make_head(name, 43, 48, use_bias=False, pad_labels_to=48)
        head.trainable = False
        if head.embedding is not None:
            head.embedding.trainable = False

        def loss(hidden, values, targets, weights):
            with keras.StatelessScope(zip(head.variables, values, strict=True)):
                return head.loss(hidden, targets, weights)

        hidden, targets, weights = (place(x) for x in batch(vocabulary_size=43))
        values = [variable.value for variable in head.variables]
        return jax.jit(jax.value_and_grad(loss))(hidden, values, targets, weights)

    set_mesh(None)
    expected = run()
    set_mesh(mesh)
    assert_close(run(), expected)
    assert len(passed) == 2


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: make_head("softmax", 43, 43), "multiple of the 8 devices.*to=48.*43 rows"),
        (lambda: make_head("tied", 43, 43), "multiple of the 8 devices.*input_dim=48.*43 rows"),
        (lambda: make_head("softmax", pad_labels_to=V - 1), "at least the 48 words.*Received"),
        (lambda: make_head("kerbs", pad_labels_to=128), "Set `num_senses`.*Received"),
        (
            lambda: HEADS["tied"](V, make_embedding("tied"), name="mine").build((B, T, D)),
            "must split 'mine/bias'.*`heads`.*Received: mesh axis None",
        ),
    ],
    ids=["rows", "rows of an embedding", "too few rows", "senses", "another name"],
)
def test_errors(make, message):
    set_mesh((1, 8))
    with pytest.raises(ValueError, match=message):
        make()
