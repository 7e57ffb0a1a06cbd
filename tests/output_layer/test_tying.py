"""A shared embedding is the same one after saving, cloning and configs, or it is an error."""

import json
import zipfile

import keras
import numpy as np
import pytest

import keras_drill

V, D, B, T = 31, 13, 5, 7


@keras.saving.register_keras_serializable(package="tests")
class Reader(keras.layers.Layer):
    """A part of a backbone that makes its own embedding, of the name that all have."""

    def __init__(self, words="embedding", size=V, **kwargs):
        super().__init__(**kwargs)
        self.embedding = keras.layers.Embedding(size, D, name=words)

    def call(self, tokens):
        return self.embedding(tokens)


@keras.saving.register_keras_serializable(package="tests")
class EncoderDecoder(keras.layers.Layer):
    """A backbone of dictionaries whose two sides have embeddings of one name and shape."""

    def __init__(self, names=("embedding", "embedding"), sizes=(V, V), **kwargs):
        super().__init__(**kwargs)
        self.names, self.sizes = names, sizes
        self.encoder, self.decoder = Reader(names[0], sizes[0]), Reader(names[1], sizes[1])

    def call(self, tokens):
        source = keras.ops.mean(self.encoder(tokens["source"]), axis=1, keepdims=True)
        return keras.ops.tanh(self.decoder(tokens["target"]) + source)

    def get_config(self):
        return {**super().get_config(), "names": self.names, "sizes": self.sizes}


def tokens(seed=0):
    return np.random.default_rng(seed).integers(0, V, (B, T)).astype("int32")


def pairs():
    return {"source": tokens(1), "target": tokens(2)}


def encoder_decoder_model(side, names=("embedding", "embedding")):
    backbone = EncoderDecoder(names)
    embedding = getattr(backbone, side).embedding
    return keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, embedding))


def saved(model, path):
    model.save(path)
    return keras.models.load_model(path)


def without_paths(path):
    """The same `.keras` file as it was before paths were kept."""
    with zipfile.ZipFile(path) as file:
        contents = {name: file.read(name) for name in file.namelist()}

    def strip(config):
        if isinstance(config, dict):
            return {k: strip(v) for k, v in config.items() if k != "embedding_path"}
        return [strip(v) for v in config] if isinstance(config, list) else config

    contents["config.json"] = json.dumps(strip(json.loads(contents["config.json"])))
    with zipfile.ZipFile(path, "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("way", ["save", "config"])
def test_either_side_of_an_encoder_decoder_backbone(side, way, tmp_path):
    model = encoder_decoder_model(side)
    expected = np.asarray(model(pairs()))
    if way == "save":
        other = saved(model, tmp_path / "model.keras")
        np.testing.assert_allclose(other(pairs()), expected, rtol=1e-5, atol=1e-6)
    else:
        other = keras_drill.LanguageModel.from_config(model.get_config())
    assert other.head.embedding is getattr(other.backbone, side).embedding
    again = type(other).from_config(other.get_config())
    assert again.head.embedding is getattr(again.backbone, side).embedding


def test_old_files_are_tied_by_a_name_that_is_of_one_embedding(tmp_path):
    model = encoder_decoder_model("decoder", names=("source_words", "target_words"))
    expected = np.asarray(model(pairs()))
    model.save(tmp_path / "model.keras")
    without_paths(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.head.embedding is loaded.backbone.decoder.embedding
    np.testing.assert_allclose(loaded(pairs()), expected, rtol=1e-5, atol=1e-6)


def test_old_files_are_refused_where_the_name_is_of_several(tmp_path):
    model = encoder_decoder_model("decoder")
    model(pairs())
    model.save(tmp_path / "model.keras")
    without_paths(tmp_path / "model.keras")
    with pytest.raises(
        ValueError,
        match=r"Several embeddings have the name.*'encoder/embedding', 'decoder/embedding'",
    ):
        keras.models.load_model(tmp_path / "model.keras")


def test_an_embedding_of_another_shape_is_not_taken_for_the_one_of_its_name(tmp_path):
    backbone = EncoderDecoder(sizes=(V + 2, V))
    model = keras_drill.LanguageModel(
        backbone, keras_drill.TiedOutput(V, backbone.decoder.embedding)
    )
    expected = np.asarray(model(pairs()))
    model.save(tmp_path / "model.keras")
    without_paths(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.head.embedding is loaded.backbone.decoder.embedding
    np.testing.assert_allclose(loaded(pairs()), expected, rtol=1e-5, atol=1e-6)


def test_a_head_with_an_embedding_of_its_own_keeps_it(tmp_path):
    """The backbone's has the same name and shape, and is not shared."""
    backbone = Reader()
    own = keras.layers.Embedding(V, D, name="embedding")
    model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, own))
    expected = np.asarray(model(tokens()))
    loaded = saved(model, tmp_path / "model.keras")
    assert loaded.head.embedding is not loaded.backbone.embedding
    np.testing.assert_allclose(loaded(tokens()), expected, rtol=1e-5, atol=1e-6)


def test_names_that_keras_counts_need_not_be_those_of_the_process_that_saved(tmp_path):
    backbone = Reader(words=None)
    model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, backbone.embedding))
    expected = np.asarray(model(tokens()))
    model.save(tmp_path / "model.keras")
    keras.layers.Embedding(V, D)  # Keras counts on
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.head.embedding is loaded.backbone.embedding
    assert loaded.head.embedding.name != backbone.embedding.name
    np.testing.assert_allclose(loaded(tokens()), expected, rtol=1e-5, atol=1e-6)


BACKBONES = {
    "sequential": lambda: keras.Sequential(
        [keras.layers.Embedding(V, D), keras.layers.LSTM(D, return_sequences=True)]
    ),
    "nested": lambda: keras.Sequential(
        [keras.Sequential([keras.layers.Embedding(V, D, name="words")]), keras.layers.Dense(D)]
    ),
}


def embedding_of(layer):
    while not isinstance(layer, keras.layers.Embedding):
        layer = layer.layers[0]
    return layer


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("way", ["save", "old file", "config"])
def test_backbones_of_keras(backbone, way, tmp_path):
    backbone = BACKBONES[backbone]()
    model = keras_drill.LanguageModel(
        backbone, keras_drill.DrillOutput(V, embedding_of(backbone), depth=1)
    )
    expected = np.asarray(model(tokens()))
    if way == "config":
        other = keras_drill.LanguageModel.from_config(model.get_config())
    else:
        model.save(tmp_path / "model.keras")
        if way == "old file":
            without_paths(tmp_path / "model.keras")
        other = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_allclose(other(tokens()), expected, rtol=1e-5, atol=1e-6)
    assert other.head.embedding is embedding_of(other.backbone)


def functional_model(side):
    """Two inputs, each embedded in a nested model of its own by an embedding of one name."""
    nested, outputs = {}, {}
    inputs = {name: keras.Input((T,), dtype="int32", name=name) for name in ("source", "target")}
    for name, symbolic in inputs.items():
        x = keras.Input((T,), dtype="int32")
        embedding = keras.layers.Embedding(V, D, name="embedding")
        nested[name] = keras.Model(x, keras.layers.Dense(D)(embedding(x)), name=f"{name}_reader")
        outputs[name] = nested[name](symbolic)
    hidden = keras.ops.tanh(outputs["source"] + outputs["target"])
    head = keras_drill.BilinearOutput(
        V, nested[side].get_layer("embedding"), name="head", bias_initializer="random_normal"
    )
    return keras.Model(inputs, head(hidden))


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("way", ["save", "clone", "config", "twice"])
def test_nested_functional_models_with_embeddings_of_one_name(side, way, tmp_path):
    model = functional_model(side)
    if way == "save":
        other = saved(model, tmp_path / "model.keras")
    elif way == "clone":
        other = keras.models.clone_model(model)
    else:
        other = keras.Model.from_config(model.get_config())
        if way == "twice":
            other = keras.models.clone_model(other)
    reader = other.get_layer(f"{side}_reader")
    assert other.get_layer("head").embedding is reader.get_layer("embedding")
    assert other.count_params() == model.count_params()
    other.set_weights(model.get_weights())
    np.testing.assert_allclose(other(pairs()), model(pairs()), rtol=1e-5, atol=1e-6)


def test_old_functional_models_are_refused_where_the_name_is_of_several(tmp_path):
    functional_model("target").save(tmp_path / "model.keras")
    without_paths(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="Several embeddings have the name"):
        keras.models.load_model(tmp_path / "model.keras")


@pytest.mark.parametrize("tie_weights", [True, False])
def test_reversible_embeddings(tie_weights, tmp_path):
    if not hasattr(keras.layers, "ReversibleEmbedding"):
        pytest.skip("this Keras has no ReversibleEmbedding")
    embedding = keras.layers.ReversibleEmbedding(V, D, tie_weights=tie_weights, name="words")
    x = keras.Input((T,), dtype="int32")
    hidden = keras.layers.Dense(D)(embedding(x))
    head = keras_drill.TiedOutput(V, embedding, use_bias=False, name="head")
    model = keras.Model(x, [head(hidden), embedding(hidden, reverse=True)])
    log_probs, logits = model(tokens())
    np.testing.assert_allclose(log_probs, keras.ops.log_softmax(logits), rtol=1e-5, atol=1e-5)
    loaded = saved(model, tmp_path / "model.keras")
    assert loaded.get_layer("head").embedding is loaded.get_layer("words")
    np.testing.assert_allclose(loaded(tokens())[0], log_probs, rtol=1e-5, atol=1e-6)


def test_sense_embeddings_of_one_name():
    def sided():
        return keras_drill.SenseEmbedding(V, D, weighting="usage", name="senses")

    x = keras.Input((T,), dtype="int32")
    first, second = keras.Sequential([sided()], name="a"), keras.Sequential([sided()], name="b")
    hidden = keras.layers.add([first(x), second(x)])
    embedding = second.layers[0]
    head = keras_drill.KernelizedBayesianSoftmax(V, embedding, name="head")
    clone = keras.models.clone_model(keras.Model(x, head(hidden)))
    head, embedding = clone.get_layer("head"), clone.get_layer("b").layers[0]
    assert head.embedding is embedding
    assert head.allocation is embedding.allocation
