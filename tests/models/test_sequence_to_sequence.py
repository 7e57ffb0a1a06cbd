"""A source and a target through an encoder–decoder and an output layer, with the fused loss."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.decoding import BeamSearch, LanguageModelStep
from keras_drill.layers import Attention
from keras_drill.metrics import Perplexity
from keras_drill.models import RecurrentEncoderDecoder, Transformer
from keras_drill.models.training_step import StepOutput

V, D, B, S, T = 31, 6, 3, 5, 7
on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.data")
BACKBONES = {
    "Transformer": lambda **k: Transformer(
        V, D, num_layers=1, num_heads=2, feed_forward_dim=11, seed=1, **k
    ),
    "recurrent": lambda **k: RecurrentEncoderDecoder(
        V, D, units=7, attention=Attention(), input_feeding=True, seed=1, **k
    ),
}
every_backbone = pytest.mark.parametrize("kind", BACKBONES)


def make(kind, cls=keras_drill.SequenceToSequence, options=None, **arguments):
    keras.utils.set_random_seed(1)
    backbone = BACKBONES[kind](**(options or {}))
    return cls(backbone, keras_drill.TiedOutput(V, backbone.embedding), **arguments)


def make_data(seed=0, size=B):
    """Inputs, labels and weights; row r has r words of padding."""
    rng = np.random.default_rng(seed)
    source, labels = rng.integers(3, V, (size, S)), rng.integers(3, V, (size, T))
    for row in range(1, size):
        source[row, -(row % S) :] = 0
        labels[row, -(row % T) :] = 0
    target = np.where(labels == 0, 0, np.roll(labels, 1, axis=1))
    target[:, 0] = 1
    inputs = {"source": source.astype("int32"), "target": target.astype("int32")}
    return inputs, labels.astype("int32"), rng.random((size, T)).astype("float32")


@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.slow)])
@every_backbone
def test_loss_and_metrics_are_those_of_the_log_probabilities(kind, weighted):
    model = make(kind, label_smoothing=0.1, reduction="mean_with_sample_weight")
    model.compile("sgd", metrics=[Perplexity(), "accuracy"])
    inputs, labels, weights = make_data()
    found = model.evaluate(
        inputs, labels, sample_weight=weights if weighted else None, verbose=0, return_dict=True
    )
    log_probs = np.float64(model.predict(inputs, verbose=0))
    of_labels = np.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
    counted = (inputs["target"] != 0) * (np.float64(weights) if weighted else 1.0)

    def mean(values):
        return (values * counted).sum() / counted.sum()

    expected = {
        "loss": mean(-0.9 * of_labels - 0.1 * log_probs.mean(axis=-1)),
        "perplexity": np.exp(mean(-of_labels)),
        "accuracy": mean(log_probs.argmax(axis=-1) == labels),
    }
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@every_backbone
def test_it_trains_as_a_language_model_does(kind):
    inputs, labels, weights = make_data()
    results = []
    for cls in (keras_drill.LanguageModel, keras_drill.SequenceToSequence):
        model = make(kind, cls, {"dropout": 0.1})
        model.compile("adam")
        for _ in range(2):
            loss = model.train_on_batch(inputs, labels, weights)
        results.append([loss, *model.get_weights()])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"source_vocabulary_size": V}],
    ids=str,
)
@every_backbone
def test_saved_cloned_and_restored_before_training_it_is_the_same(kind, options, tmp_path):
    model = make(kind, options=options)
    inputs, labels, _ = make_data()
    model.compile("adam", metrics=[Perplexity()])
    model.fit(inputs, labels, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    again = make(kind, options=options)  # built: weights can be counted and loaded
    again.load_weights(tmp_path / "model.weights.h5")
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    expected = model.predict(inputs, verbose=0)
    for other in (keras.models.load_model(tmp_path / "model.keras"), again, clone):
        backbone = other.backbone
        assert other.head.embedding is backbone.embedding is backbone.decoder.embedding
        assert (backbone.encoder.embedding is backbone.embedding) == (not options)
        assert other.count_params() == model.count_params()
        np.testing.assert_array_equal(other.predict(inputs, verbose=0), expected)


@pytest.mark.slow
@on_tensorflow
@every_backbone
def test_exported_it_takes_batches_of_any_shape(kind, tmp_path):
    import tensorflow as tf

    model = make(kind)
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    inputs, _, _ = make_data(size=4)
    found = exported.serve({name: rows[:, :-1] for name, rows in inputs.items()})
    expected = model({name: rows[:, :-1] for name, rows in inputs.items()})
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
@on_tensorflow
def test_batches_of_pairs_train_it():
    from keras_drill.data import EncodedText, PairBatches

    text = EncodedText(np.array([3, 5, 2, 4, 2], "int32"), np.array([3, 2]))
    batches = PairBatches(text, text, end_id=2, start_id=1, batch_size=2)
    model = make("recurrent")
    model.compile(keras.optimizers.Adam(0.03), metrics=[Perplexity()])
    losses = model.fit(batches.dataset(epochs=20), epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0]


@every_backbone
def test_the_best_translation_has_the_log_probability_of_the_model(kind):
    model = make(kind)
    inputs, _, _ = make_data()
    buffer = np.zeros((B, 4), "int32")
    buffer[:, 0] = 1
    beams = BeamSearch(num_beams=3)(
        LanguageModelStep(model),
        buffer,
        np.ones(B, int),
        inputs={"source": inputs["source"]},
        end_token=2,
        forbidden_tokens=[0],
    )
    tokens = ops.convert_to_numpy(beams.tokens)[:, 0]
    log_probs = model.predict({**inputs, "target": tokens[:, :-1]}, verbose=0)
    words = np.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1)[..., 0]
    words = np.where(np.arange(3) < ops.convert_to_numpy(beams.lengths)[:, :1] - 1, words, 0)
    np.testing.assert_allclose(beams.log_probs[:, 0], words.sum(axis=-1), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reduction",
    [
        "sum_over_batch_size",
        "mean_with_sample_weight",
    ],
)
def test_the_loss_of_some_positions_is_that_of_all_on_average(reduction):
    model = make("recurrent", reduction=reduction, loss_positions=0.25, seed=3)
    inputs, labels, weights = make_data(size=11)
    model.compile("sgd", jit_compile=False)
    every = float(model.compute_loss(inputs, labels, sample_weight=weights, training=False))
    hidden = model.backbone(inputs)

    def loss_of_some(hidden):
        y_pred = StepOutput(None, hidden, ops.not_equal(inputs["target"], 0))
        return model.compute_loss(None, labels, y_pred, weights)

    found = np.array([float(loss_of_some(hidden)) for _ in range(80)])
    assert found.std() > 0.1 * every
    assert abs(found.mean() - every) < 4 * found.std() / 80**0.5
    again = type(model).from_config(model.get_config())
    assert (again.loss_positions, again.seed) == (0.25, 3)


def test_positions_are_chosen_one_by_one_at_their_rate():
    model = make("recurrent", loss_positions=0.25)
    labels = np.zeros((50, 101), "int32")
    chosen = ops.convert_to_numpy(model.choose_positions(None, labels))
    assert set(np.unique(chosen)) == {0.0, 4.0}
    assert chosen.mean() == pytest.approx(1, abs=0.1)
    weights = np.where(np.arange(101) < 50, 2.0, 0.0) * np.ones((50, 1))
    chosen = ops.convert_to_numpy(model.choose_positions(ops.convert_to_tensor(weights), labels))
    assert set(np.unique(chosen)) == {0.0, 8.0} and not chosen[:, 50:].any()
    assert make("recurrent").choose_positions(None, labels) is None
    with pytest.raises(ValueError, match="`loss_positions` must be in"):
        make("recurrent", loss_positions=0.0)


def test_one_position_of_each_example_is_chosen_evenly():
    model = make("recurrent", loss_positions="one", seed=3)
    labels = np.zeros((500, 7), "int32")
    chosen = ops.convert_to_numpy(model.choose_positions(None, labels))
    assert ((chosen == 7).sum(axis=1) == 1).all() and ((chosen == 0).sum(axis=1) == 6).all()
    assert chosen.mean(axis=0) == pytest.approx(np.ones(7), abs=0.5)
    weights = np.ones((500, 7), "float32") * [2, 0, 1, 1, 0, 0, 0]
    weights[0] = 0
    chosen = ops.convert_to_numpy(model.choose_positions(ops.convert_to_tensor(weights), labels))
    assert not chosen[0].any() and not chosen[:, [1, 4, 5, 6]].any()
    assert ((chosen[1:] > 0).sum(axis=1) == 1).all()
    assert set(np.unique(chosen[:, 0])) == {0.0, 6.0} and set(np.unique(chosen[:, 2])) == {0.0, 3.0}
    again = type(model).from_config(model.get_config())
    assert again.loss_positions == "one" and again.seed_generator is not None
    with pytest.raises(ValueError, match=r"in \(0, 1\], or \"one\". Received: .*'two'"):
        make("recurrent", loss_positions="two")


@every_backbone
def test_empty_batches_and_sources_of_padding(kind):
    model = make(kind)
    inputs, labels, _ = make_data()
    inputs["source"][:] = 0
    assert np.isfinite(float(model.compute_loss(inputs, labels)))
    nothing = {name: rows[:0] for name, rows in inputs.items()}
    assert float(model.compute_loss(nothing, labels[:0])) == 0
    inputs["target"][:] = 0
    assert float(model.compute_loss(inputs, labels)) == 0


def test_a_backbone_that_is_built_takes_every_argument():
    backbone = BACKBONES["Transformer"]()
    inputs, _, _ = make_data()
    backbone(inputs)
    sampling = keras_drill.ScheduledSampling(0.5)
    head = keras_drill.TiedOutput(V, backbone.embedding)
    model = keras_drill.SequenceToSequence(backbone, head, scheduled_sampling=sampling)
    assert model.built and any(v is sampling.step for v in model.non_trainable_variables)


def test_wrong_inputs_are_named():
    model = make("Transformer")
    inputs, _, _ = make_data()
    for wrong, message in [
        (inputs["source"], 'a dictionary {"source"'),
        ({"source": inputs["source"]}, r"Received: \['source'\]"),
        ({**inputs, "source": np.ones((B, S))}, "`source` must be integers.*dtype float"),
        ({**inputs, "target": np.ones((B, T, 1), int)}, "`target` must be integers.*shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            model(wrong)


@on_tensorflow
def test_ragged_rows_are_refused():
    import tensorflow as tf

    model = make("recurrent")
    inputs, _, _ = make_data()
    inputs["target"] = tf.ragged.constant([[1, 2], [1], [1, 2, 3]])
    with pytest.raises(ValueError, match="`target` must not be ragged"):
        model(inputs)
