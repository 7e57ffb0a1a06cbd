"""What is done with any Keras model, done with a LanguageModel."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill

V, D, B, T = 17, 5, 4, 7
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="tf.data and SavedModels"
)


def make_model(kind="functional"):
    keras.utils.set_random_seed(0)
    embedding = keras.layers.Embedding(V, D)
    if kind == "functional":
        tokens = keras.Input((None,), dtype="int32")
        backbone = keras.Model(tokens, keras.layers.Dense(D)(embedding(tokens)))
    elif kind == "sequential":
        backbone = keras.Sequential([embedding, keras.layers.Dense(D)])
    elif kind == "features":
        backbone, embedding = keras.layers.Dense(D), None
    else:
        inputs = {
            "tokens": keras.Input((None,), dtype="int32", name="tokens"),
            "features": keras.Input((None, 3), name="features"),
        }
        both = keras.layers.Concatenate()([embedding(inputs["tokens"]), inputs["features"]])
        backbone = keras.Model(inputs, keras.layers.Dense(D)(both))
    head = keras_drill.OutputLayer(V, embedding=embedding)
    model = keras_drill.LanguageModel(backbone, head)
    model.compile(keras.optimizers.SGD(0.1), metrics=[keras_drill.metrics.Perplexity()])
    return model


def make_data(kind="functional"):
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(0, V, (2, B, T)).astype("int32")
    features = rng.normal(size=(B, T, 3)).astype("float32")
    inputs = {
        "features": features,
        "both": {"tokens": tokens, "features": features},
        "pairs": {"source": tokens, "target": tokens},
    }
    return inputs.get(kind, tokens), targets


@pytest.mark.slow
def test_a_model_of_a_built_backbone_is_built(tmp_path):
    """Weights are counted, shown, loaded and restored before the first `fit`."""
    model, other = make_model(), make_model()
    assert model.built
    assert model.count_params() == V * D + D * D + D + V
    model.summary(print_fn=lambda *_, **__: None)
    tokens, targets = make_data()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)
    model.fit(tokens, targets, epochs=2, verbose=0, callbacks=[backup])
    model.save_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(other(tokens), model(tokens), rtol=1e-6)
    restored = make_model()
    history = restored.fit(tokens, targets, epochs=3, verbose=0, callbacks=[backup])
    assert history.epoch == [2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sequential", "features", "both"])
def test_inputs_of_any_kind(kind, tmp_path):
    model = make_model(kind)
    inputs, targets = make_data(kind)
    model.fit(inputs, targets, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(inputs), model(inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@on_tensorflow
@pytest.mark.parametrize("kind", ["functional", "sequential", "both"])
def test_an_exported_model_takes_batches_of_any_size_and_length(kind, tmp_path):
    import tensorflow as tf

    model = make_model(kind)
    inputs, targets = make_data(kind)
    model.fit(inputs, targets, verbose=0)
    model.export(tmp_path / "model", verbose=False)
    served = tf.saved_model.load(tmp_path / "model")
    fewer = keras.tree.map_structure(lambda x: x[:3, :5], inputs)
    np.testing.assert_allclose(served.serve(fewer), model(fewer), rtol=1e-5, atol=1e-6)
    specs = keras.tree.flatten(served.signatures["serving_default"].structured_input_signature[1])
    assert {spec.dtype for spec in specs if len(spec.shape) == 2} == {tf.int32}


@pytest.mark.slow
@on_tensorflow
@pytest.mark.parametrize("kind", ["functional", "sequential", "both"])
def test_a_saved_model_has_a_signature_of_words(kind, tmp_path):
    import tensorflow as tf

    model = make_model(kind)
    inputs, targets = make_data(kind)
    model.fit(inputs, targets, verbose=0)
    tf.saved_model.save(model, str(tmp_path))
    serve = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    specs = serve.structured_input_signature[1]
    assert {spec.dtype for spec in specs.values() if len(spec.shape) == 2} == {tf.int32}
    fewer = keras.tree.flatten(keras.tree.map_structure(lambda x: x[:3, :5], inputs))
    fewer = dict(zip(sorted(specs), map(tf.constant, fewer), strict=True))
    (found,) = serve(**{k: tf.cast(x, specs[k].dtype) for k, x in fewer.items()}).values()
    expected = model(keras.tree.map_structure(lambda x: x[:3, :5], inputs))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_targets_with_an_axis_of_one():
    tokens, targets = make_data()
    found = [
        make_model().test_on_batch(tokens, y)
        for y in (targets, targets[..., None], targets.astype("float32"))
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-6)


@pytest.mark.slow
@on_tensorflow
def test_shapes_that_are_known_here_and_not_there():
    """A stateful backbone knows its batch size and `tf.data` does not; nor, at times, the rank."""
    import tensorflow as tf

    # Keras' own stateful layers take no batch of unknown size before Keras 3.13.
    backbone = keras_drill.models.GRULanguageBackbone(V, D, D, 1, stateful=True, batch_size=B)
    backbone.build((B, None))
    head = keras_drill.OutputLayer(V, embedding=backbone.embedding)
    model = keras_drill.LanguageModel(backbone, head)
    model.compile("sgd", metrics=[keras_drill.metrics.Perplexity()])
    tokens, targets = make_data()
    weights = np.random.default_rng(1).random((B, T)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((tokens, targets, weights)).batch(B)

    def forget(x, y, w):
        y, w = tf.py_function(lambda *all: all, (y, w), (tf.int32, tf.float32))
        assert y.shape.rank is None
        return x, y, w

    found = []
    for data in (dataset, dataset.map(forget)):
        backbone.reset_state()
        found.append(model.evaluate(data, verbose=0))
    np.testing.assert_allclose(*found, rtol=1e-6)
    model.fit(dataset, verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3])
def test_steps_per_execution(steps):
    model = make_model()
    tokens, targets = (np.concatenate([x] * 3) for x in make_data())
    model.compile("sgd", steps_per_execution=steps)
    expected = make_model()
    expected.compile("sgd")
    expected.fit(tokens, targets, B, shuffle=False, verbose=0)
    model.fit(tokens, targets, B, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], expected.get_weights()[0], rtol=1e-5)


OWN_BACKBONES = {
    "AWD-LSTM": lambda: keras_drill.models.AWDLSTM(V, D, 11, num_layers=2),
    "Transformer": lambda: keras_drill.models.TransformerLanguageBackbone(
        V, 6, 1, num_heads=2, feed_forward_dim=11
    ),
    "pairs": lambda: keras_drill.models.RecurrentEncoderDecoder(V, D, 11, 1, dropout=0.1),
}


HEADS = {
    "softmax": lambda embedding: keras_drill.SoftmaxOutput(V),
    "tied": lambda embedding: keras_drill.TiedOutput(V, embedding),
    "bilinear": lambda embedding: keras_drill.BilinearOutput(V, embedding),
    "dual": lambda embedding: keras_drill.DualNonlinearOutput(V, embedding),
    "drill": lambda embedding: keras_drill.DrillOutput(V, embedding, depth=2, dropout=0.3),
    "mos": lambda embedding: keras_drill.MixtureOfSoftmaxes(V, num_mixtures=2),
    "kerbs": lambda embedding: keras_drill.KernelizedBayesianSoftmax(V, num_senses=23),
}


def with_own_backbone(kind, head="softmax"):
    backbone = OWN_BACKBONES[kind]()
    cls = keras_drill.SequenceToSequence if kind == "pairs" else keras_drill.LanguageModel
    return cls(backbone, HEADS[head](backbone.embedding))


@pytest.mark.parametrize(
    "backbone_class", [keras_drill.models.Transformer, keras_drill.models.RecurrentEncoderDecoder]
)
def test_a_language_model_builds_an_encoder_decoder(backbone_class):
    model = keras_drill.LanguageModel(backbone_class(V, 8), keras_drill.SoftmaxOutput(V))
    assert model.built and model.count_params()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", OWN_BACKBONES)
def test_no_layer_is_left_to_build(kind, head):
    """Where one is, it may have variables, and TensorFlow traces the first step twice."""
    model = with_own_backbone(kind, head)
    unbuilt = [layer.name for layer in model._flatten_layers() if not layer.built]
    assert unbuilt == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", OWN_BACKBONES)
def test_weights_are_there_before_any_data(kind, tmp_path):
    """They can be counted, shown, and loaded."""
    models = [with_own_backbone(kind) for _ in range(2)]
    count = models[0].count_params()
    models[0].summary(print_fn=lambda line, **_: None)
    models[0].save_weights(tmp_path / "model.weights.h5")
    models[1].load_weights(tmp_path / "model.weights.h5")
    inputs, targets = make_data(kind)
    first, second = (model.predict(inputs, verbose=0) for model in models)
    np.testing.assert_array_equal(first, second)
    models[0].compile("sgd")
    models[0].fit(inputs, targets, verbose=0)
    assert models[0].count_params() == count


@pytest.mark.slow
@on_tensorflow
@pytest.mark.parametrize(
    ("kind", "metrics", "one_batch"),
    [
        *(("functional", *case) for case in itertools.product((None, ["accuracy"]), (False, True))),
        *((kind, None, False) for kind in OWN_BACKBONES),
    ],
)
def test_a_step_is_traced_once(kind, metrics, one_batch, monkeypatch):
    """Tracing is most of the time before the first step of a deep model."""
    model = make_model() if kind == "functional" else with_own_backbone(kind)
    model.compile(keras.optimizers.Adam(clipnorm=1.0), metrics=metrics)
    traces = []
    compute_loss = type(model).compute_loss

    def counted(*args, **kwargs):
        traces.append(args)
        return compute_loss(*args, **kwargs)

    monkeypatch.setattr(type(model), "compute_loss", counted)
    for _ in range(2):
        (model.train_on_batch if one_batch else model.fit)(*make_data(kind))
    assert len(traces) == 1


@pytest.mark.slow
@on_tensorflow  # on JAX Keras makes all variables before, without training
def test_layers_that_only_training_calls_are_trained():
    class Backbone(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(V, D)
            self.noise = keras.layers.Dense(D, use_bias=False)

        def call(self, tokens, training=False):
            hidden = self.embedding(tokens)
            return hidden + self.noise(hidden) if training else hidden

    backbone = Backbone()
    model = keras_drill.LanguageModel(backbone, keras_drill.OutputLayer(V))
    tokens, targets = make_data()
    model(tokens)
    assert model.built and not backbone.noise.built
    model.compile(keras.optimizers.Adam(0.1))
    model.train_on_batch(tokens, targets)
    before = ops.convert_to_numpy(backbone.noise.kernel)
    model.train_on_batch(tokens, targets)
    assert (ops.convert_to_numpy(backbone.noise.kernel) != before).any()


def test_an_empty_batch_counts_nothing():
    model = make_model()
    empty = np.zeros((0, T), "int32")
    assert float(model.compute_loss(empty, empty)) == 0
    assert float(model.get_metrics_result()["loss"]) == 0


def test_what_cannot_be_is_refused():
    model = make_model()
    tokens, targets = make_data()
    for train in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match=r"`class_weight` must be None.*Received"):
            train(tokens, targets, class_weight={0: 2.0})
    with pytest.raises(ValueError, match=r"`y` must be the targets.*Received: y=None"):
        model.fit(tokens, verbose=0)
    with pytest.raises(ValueError, match=r"`sample_weight` must have the targets' shape \(4, 7\)"):
        model.compute_loss(tokens, targets, sample_weight=np.ones((B, T + 1)))
    two = keras.Model(model.backbone.input, {"h": model.backbone.output, "x": model.backbone.input})
    with pytest.raises(
        ValueError, match=r"`backbone` must give one tensor.*Received: \['h', 'x'\]"
    ):
        keras_drill.LanguageModel(two, keras_drill.OutputLayer(V))
    with pytest.raises(ValueError, match="`reduction` must be one of"):
        keras_drill.LanguageModel(model.backbone, model.head, reduction="max")
    with pytest.raises(ValueError, match="`label_smoothing` must be in"):
        keras_drill.LanguageModel(model.backbone, model.head, label_smoothing=1)


def test_a_clone_has_weights_of_its_own():
    model = make_model()
    clone = keras.models.clone_model(model)
    assert clone.head.embedding is not model.head.embedding
    assert clone.count_params() == model.count_params()
    clone.set_weights(model.get_weights())
    tokens, _ = make_data()
    np.testing.assert_allclose(clone(tokens), model(tokens), rtol=1e-6)
    assert ops.ndim(clone.head.embeddings) == 2
