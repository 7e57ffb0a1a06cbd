"""Frozen heads learn nothing and freeze nothing that is not theirs; folded ones share nothing."""

import keras
import numpy as np
import pytest

import keras_drill

V, M, D, B, T = 31, 67, 13, 5, 7


def embedding():
    return keras.layers.Embedding(V, D, name="words")


def senses():
    return keras_drill.SenseEmbedding(V, D, num_senses=M, weighting="usage", name="senses")


HEADS = {
    "softmax": lambda: keras_drill.SoftmaxOutput(V),
    "tied": lambda: keras_drill.TiedOutput(V, embedding()),
    "bilinear": lambda: keras_drill.BilinearOutput(V, embedding()),
    "dual": lambda: keras_drill.DualNonlinearOutput(V, embedding(), units=11),
    "drill": lambda: keras_drill.DrillOutput(V, embedding(), depth=2, dual=True),
    "described": lambda: keras_drill.OutputLayer(
        V,
        embedding(),
        keras_drill.DescriptionLabelEncoder(np.random.default_rng(1).normal(size=(V, 11))),
    ),
    "mixture": lambda: keras_drill.MixtureOfSoftmaxes(V, embedding(), num_mixtures=3),
    "kerbs": lambda: keras_drill.KernelizedBayesianSoftmax(V, num_senses=M, use_bias=True),
    "kerbs, tied": lambda: keras_drill.KernelizedBayesianSoftmax(V, senses()),
    "kerbs, drill": lambda: keras_drill.KernelizedBayesianSoftmax(
        V, senses(), label_encoder=keras_drill.ResidualLabelEncoder(depth=2)
    ),
    "senses by composition": lambda: keras_drill.OutputLayer(
        V, composition=keras_drill.compositions.MultiSense(V, M)
    ),
}
every_head = pytest.mark.parametrize("name", HEADS)
sense_heads = pytest.mark.parametrize("name", [n for n in HEADS if "kerbs" in n or "senses" in n])


def make(name):
    head = HEADS[name]()
    head.build((None, T, D))
    return head


def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(B, T, D)).astype("float32"), rng.integers(0, V, (B, T))


def own_variables(head):
    shared = set() if head.embedding is None else {id(v) for v in head.embedding.variables}
    return [v for v in head.variables if id(v) not in shared]


@every_head
@pytest.mark.parametrize("when", ["at first", "before it is built", "later"])
def test_a_frozen_head_does_not_freeze_the_embedding_that_it_shares(name, when):
    head = HEADS[name]()
    if when == "at first":
        head = type(head).from_config({**head.get_config(), "trainable": False})
    elif when == "before it is built":
        head.trainable = False
    x = keras.Input((T,), dtype="int32")
    table = head.embedding or keras.layers.Embedding(V, D)
    model = keras.Model(x, head(keras.layers.Dense(D, name="dense")(table(x))))
    head.trainable = False
    trained = {id(v) for v in model.trainable_variables}
    assert not trained & {id(v) for v in own_variables(head)}
    of_others = [*table.trainable_variables, *model.get_layer("dense").trainable_variables]
    assert trained == {id(v) for v in of_others} and table.trainable_variables
    assert head.trainable_variables == []
    head.trainable = True
    assert {id(v) for v in head.trainable_variables} <= {id(v) for v in model.trainable_variables}


def test_an_embedding_that_is_frozen_stays_so():
    head = make("tied")
    head.embedding.trainable = False
    head.trainable = False
    head.trainable = True
    assert [v.name for v in head.trainable_variables] == ["bias"]


def test_a_table_frozen_under_lora_stays_so():
    head = make("tied")
    head.embedding.enable_lora(2)
    head.trainable = False
    head.trainable = True
    names = {v.name for v in head.trainable_variables}
    assert names == {"bias", "lora_embeddings_a", "lora_embeddings_b"}


@sense_heads
@pytest.mark.parametrize("frozen", ["head", "embedding"])
def test_senses_of_a_frozen_head_are_not_counted_and_do_not_move(name, frozen):
    head = make(name)
    if frozen == "embedding":
        if head.embedding is None:
            pytest.skip("no shared embedding")
        head.embedding.trainable = False
    else:
        head.trainable = False
    allocation = head.composition.allocation
    before = [np.array(v) for v in allocation.variables]
    policy = keras_drill.senses.policies.ThresholdPolicy(-1.0)
    reallocator = keras_drill.SenseReallocator(head, interval=2, policy=policy)
    for iteration in (1, 2):
        head.loss(*data())
        assert reallocator.step(iteration) is None
    assert reallocator.reallocate(3) is None
    for a, b in zip(allocation.variables, before, strict=True):
        np.testing.assert_array_equal(a, b)
    head.trainable = True
    if head.embedding is not None:
        head.embedding.trainable = True
    head.loss(*data())
    assert len(reallocator.step(4)["senses"])  # frozen no more


@every_head
def test_training_on_does_not_reach_a_folded_head(name):
    head = make(name)
    rng = np.random.default_rng(1)
    for v in head.trainable_variables:
        v.assign(rng.normal(size=v.shape))
    folded = head.folded()
    hidden, targets = data()
    expected = np.asarray(folded(hidden))
    np.testing.assert_allclose(expected, head(hidden), rtol=1e-4, atol=1e-4)
    ids = {id(v) for v in head.variables}
    assert not [v.path for v in folded.variables if id(v) in ids]
    assert not folded.trainable_variables
    for v in head.trainable_variables:
        v.assign(rng.normal(size=v.shape))
    allocation = getattr(head.composition, "allocation", None)
    if allocation is not None:
        allocation.assign(np.roll(np.asarray(allocation.sense_to_word), 1))
    folded.loss(hidden, targets)  # counts nothing
    np.testing.assert_array_equal(folded(hidden), expected)
    again = type(folded).from_config(folded.get_config())
    again.build((None, T, D))
    for a, b in zip(again.variables, folded.variables, strict=True):
        a.assign(b)
    if allocation is None:
        np.testing.assert_allclose(again(hidden), expected, rtol=1e-6, atol=1e-6)
