"""Tied heads read what an embedding means, however it keeps its table."""

import keras
import numpy as np
import pytest

import keras_drill
from tests.gradients import value_and_gradients

V, D, B, T = 31, 12, 5, 7  # int4 packs pairs and wants no odd width

HEADS = {
    "tied": lambda e: keras_drill.TiedOutput(V, e),
    "dual": lambda e: keras_drill.DualNonlinearOutput(V, e, units=11),
    "mixture": lambda e: keras_drill.MixtureOfSoftmaxes(V, e, num_mixtures=2),
}
every_head = pytest.mark.parametrize("head", HEADS)
has_reversible = pytest.mark.skipif(
    not hasattr(keras.layers, "ReversibleEmbedding"), reason="Keras is too old for it"
)


def make(head, embedding=None):
    embedding = embedding or keras.layers.Embedding(V, D)
    embedding.build(None)
    embedding.embeddings.assign(np.random.default_rng(1).normal(size=(V, D)))
    head = HEADS[head](embedding)
    head.build((None, T, D))
    return head


def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(B, T, D)).astype("float32"), rng.integers(0, V, (B, T))


@every_head
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_quantised_embedding(head, mode):
    head = make(head)
    hidden, targets = data()
    before = float(head.loss(hidden, targets, training=False))
    head.embedding.quantize(mode)
    after = float(head.loss(hidden, targets, training=False))
    assert after == pytest.approx(before, rel={"int8": 0.03, "int4": 0.3}[mode])
    table = np.asarray(head.embedding(np.arange(V)))
    np.testing.assert_array_equal(head.embeddings, table)
    chosen = np.take_along_axis(np.asarray(head(hidden)), targets[..., None], -1)
    assert after == pytest.approx(-chosen.mean(), rel=1e-4)
    np.testing.assert_allclose(head.folded()(hidden), head(hidden), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head, mode", [*((head, "int8") for head in HEADS), ("dual", "float8")])
def test_a_quantised_model(head, mode, tmp_path):
    x = keras.Input((T,), dtype="int32")
    embedding = keras.layers.Embedding(V, D, name="words")
    hidden = keras.layers.Dense(D)(embedding(x))
    model = keras.Model(x, HEADS[head](embedding)(hidden))
    tokens = data()[1]
    before = np.asarray(model(tokens))
    model.quantize(mode)
    after = np.asarray(model(tokens))
    np.testing.assert_allclose(after, before, atol=0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(tokens), after, rtol=1e-5, atol=1e-5)
    assert loaded.layers[-1].embedding is loaded.get_layer("words")


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModel")
@pytest.mark.parametrize("head, mode", [("tied", "int8"), ("dual", "int4")])
def test_a_quantised_language_model_is_exported_and_saved(head, mode, tmp_path):
    import tensorflow as tf

    embedding = keras.layers.Embedding(V, D, name="words", embeddings_initializer="normal")
    backbone = keras.Sequential([embedding, keras_drill.layers.LSTM(D, return_sequences=True)])
    model = keras_drill.LanguageModel(backbone, HEADS[head](embedding))
    tokens = data()[1].astype("int32")
    model(tokens)
    model.quantize(mode)
    assert model.head.embedding.quantization_mode == mode
    expected = np.asarray(model(tokens))
    model.export(tmp_path / "1", verbose=False)
    served = tf.saved_model.load(tmp_path / "1")
    np.testing.assert_allclose(served.serve(tokens), expected, rtol=1e-5, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.head.embedding is loaded.backbone.layers[0]
    np.testing.assert_allclose(loaded(tokens), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
def test_heads_without_a_shared_embedding_stay_as_they_are_in_a_quantised_model(mode):
    x = keras.Input((T, D))
    heads = [keras_drill.SoftmaxOutput(V), keras_drill.KernelizedBayesianSoftmax(V)]
    model = keras.Model(x, [head(x) for head in heads])
    hidden = data()[0]
    before = model(hidden)
    model.quantize(mode)
    for a, b in zip(model(hidden), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_tied_sense_embedding_stays_as_it_is_in_a_quantised_model():
    embedding = keras_drill.SenseEmbedding(V, D, weighting="usage")
    x = keras.Input((T,), dtype="int32")
    model = keras.Model(x, keras_drill.KernelizedBayesianSoftmax(V, embedding)(embedding(x)))
    before = np.asarray(model(data()[1]))
    model.quantize("int8")
    np.testing.assert_array_equal(model(data()[1]), before)


@every_head
def test_an_embedding_with_lora(head):
    head = make(head)
    head.embedding.enable_lora(2)
    hidden, targets = data()
    rng = np.random.default_rng(2)
    a, b = head.embedding.lora_embeddings_a, head.embedding.lora_embeddings_b
    a.assign(rng.normal(size=a.shape)), b.assign(rng.normal(size=b.shape))
    np.testing.assert_allclose(head.embeddings, head.embedding(np.arange(V)), rtol=1e-6)
    same = make("tied")
    same.embedding.embeddings.assign(head.embeddings)
    if type(head) is type(same):
        np.testing.assert_allclose(head(hidden), same(hidden), rtol=1e-5, atol=1e-6)
    loss, gradients, _ = value_and_gradients(
        lambda hidden: head.loss(hidden, targets), [a, b], hidden
    )
    assert np.isfinite(float(loss)) and all(np.abs(g).max() > 0 for g in gradients)


@has_reversible
@pytest.mark.parametrize("mode", [None, "int8"])
def test_an_untied_reversible_embedding_is_read_at_its_output_table(mode):
    embedding = keras.layers.ReversibleEmbedding(V, D, tie_weights=False)
    head = make("dual", embedding)
    hidden, targets = data()
    table = np.random.default_rng(2).normal(size=(D, V)).astype("float32")
    embedding.reverse_embeddings.assign(table)
    if mode:
        embedding.quantize(mode)
    np.testing.assert_allclose(head.embeddings, table.T, atol=0.02 if mode else 0)
    loss = head.loss(hidden, targets, training=False)
    chosen = np.take_along_axis(np.asarray(head(hidden)), targets[..., None], -1)
    assert float(loss) == pytest.approx(-chosen.mean(), rel=1e-4)


@has_reversible
def test_gradients_reach_the_output_table_and_not_the_input_table():
    embedding = keras.layers.ReversibleEmbedding(V, D, tie_weights=False)
    head = make("tied", embedding)
    hidden, targets = data()
    _, (gradient,), _ = value_and_gradients(
        lambda hidden: head.loss(hidden, targets), [embedding.reverse_embeddings], hidden
    )
    assert np.abs(gradient).max() > 0


@has_reversible
def test_an_output_table_in_int4_is_refused():
    embedding = keras.layers.ReversibleEmbedding(V, D, tie_weights=False)
    head = make("tied", embedding)
    embedding.quantize("int4")
    with pytest.raises(ValueError, match=r"unquantised or in .*quantization_mode='int4'"):
        head.loss(*data())
