"""Labels from descriptions, beside embeddings and instead of them, against what NumPy finds."""

import json

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill import DescriptionLabelEncoder
from keras_drill.compositions import MultiSense

V, M, D, F, L, N = 31, 67, 13, 11, 5, 17
TOLERANCE = 1e-4 if keras.backend.backend() == "jax" else 1e-10  # JAX has no float64 by default
RNG = np.random.default_rng(0)
FEATURES, IDS = RNG.normal(size=(V, F)), RNG.integers(0, 19, (V, L))
HIDDEN, TARGETS = RNG.normal(size=(N, D)), RNG.integers(0, V, N)


def id_network(dtype="float32"):
    return keras.Sequential(
        [
            keras.Input((L,), dtype="int32"),
            keras.layers.Embedding(19, 3, dtype=dtype),
            keras.layers.Conv1D(7, 2, activation="relu", dtype=dtype),
            keras.layers.GlobalMaxPooling1D(dtype=dtype),
            keras.layers.Dense(D, dtype=dtype),
        ]
    )


HEADS = {
    "softmax": lambda e, **k: keras_drill.OutputLayer(V, label_encoder=e, **k),
    "padded": lambda e, **k: keras_drill.OutputLayer(V, label_encoder=e, pad_labels_to=37, **k),
    "senses": lambda e, **k: keras_drill.OutputLayer(
        V, label_encoder=e, composition=MultiSense(V, M), **k
    ),
    "kerbs": lambda e, **k: keras_drill.KernelizedBayesianSoftmax(
        V, num_senses=M, label_encoder=e, **k
    ),
    "mixture": lambda e, **k: keras_drill.MixtureOfSoftmaxes(
        V, num_mixtures=3, label_encoder=e, **k
    ),
}
every_head = pytest.mark.parametrize("name", HEADS)


def make(name, dtype="float32", **options):
    keras.utils.set_random_seed(3)
    encoder = DescriptionLabelEncoder(FEATURES, dtype=dtype, **options)
    head = HEADS[name](encoder, dtype=dtype)
    head.build((None, D))
    if head.bias is not None:
        head.bias.assign(RNG.normal(size=head.bias.shape))
    return head


@every_head
@pytest.mark.parametrize("residual_to_input", [True, False])
def test_labels_are_what_numpy_finds(name, residual_to_input):
    head = make(name, "float64", residual_to_input=residual_to_input)
    encoder = head.label_encoder
    unknown = [2, 3, 7]
    encoder.has_embedding.assign(~np.isin(np.arange(V), unknown))
    (kernel,) = map(np.asarray, encoder.label_network.weights)
    expected = np.tile(FEATURES @ kernel, (3, 1))[:M]  # senses go round the words
    if residual_to_input:
        table = np.array(head.label_embeddings)
        table[np.isin(np.arange(len(table)) % V, unknown)] = 0
        expected = expected[: len(table)] + table[:M]
    labels = head.encoded_labels()
    assert labels.shape == ((M if name in ("senses", "kerbs") else V), D)
    np.testing.assert_allclose(labels, expected[: len(labels)], rtol=TOLERANCE, atol=TOLERANCE)


@every_head
def test_loss_log_probabilities_and_folded_layers_agree(name):
    head = make(name, "float64")
    log_probs = np.asarray(head(HIDDEN))
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=TOLERANCE)
    chosen = np.take_along_axis(log_probs, TARGETS[:, None], -1)[:, 0]
    np.testing.assert_allclose(head.log_prob(HIDDEN, TARGETS), chosen, rtol=TOLERANCE)
    smooth = 0.9 * chosen + 0.1 * log_probs.mean(-1)
    loss = head.loss(HIDDEN, TARGETS, label_smoothing=0.1)
    np.testing.assert_allclose(loss, -smooth.mean(), rtol=TOLERANCE)
    folded = head.folded()
    np.testing.assert_allclose(folded(HIDDEN), log_probs, rtol=TOLERANCE)
    assert not any("descriptions" in variable.path for variable in folded.variables)
    assert np.asarray(head.top_k(HIDDEN, 3)[1])[:, 0].tolist() == log_probs.argmax(-1).tolist()


@every_head
def test_senses_take_the_description_of_the_word_they_move_to(name):
    head = make(name)
    if name not in ("senses", "kerbs"):
        assert head.composition.words_of_labels() is None
        return
    before = np.asarray(head.encoded_labels()) - np.asarray(head.label_embeddings)
    words = np.arange(M) % V
    words[M - 1], words[1] = words[1], words[M - 1]
    head.composition.allocation.assign(words)
    after = np.asarray(head.encoded_labels()) - np.asarray(head.label_embeddings)
    np.testing.assert_allclose(after, before[words], atol=1e-6)
    assert abs(after - before).max() > 0.1


@every_head
def test_dropout_takes_whole_words_and_leaves_their_description(name):
    head = make(name, embedding_dropout=0.4, seed=7)
    table = np.asarray(head.label_embeddings)
    words = np.arange(len(table)) % V
    described = np.asarray(head._labels(training=False)) - table
    kept = np.zeros((50, V))
    for i in range(50):
        share = (np.asarray(head._labels(training=True)) - described) / table
        share = share[:M] if name in ("senses", "kerbs") else share[:V]
        np.testing.assert_allclose(share, np.tile(np.round(share[:, :1]), D), atol=2e-3)
        kept[i, words[: len(share)]] = np.round(share[:, 0])
        assert (kept[i, words[: len(share)]] == np.round(share[:, 0])).all()  # of all its senses
    assert abs(kept.mean() - 0.6) < 0.05
    assert kept.mean(0).min() > 0 and kept.mean(0).max() < 1


@pytest.mark.slow
@pytest.mark.parametrize("residual_to_input", [True, False])
def test_training_reaches_network_and_embeddings_and_no_description(residual_to_input):
    encoder = DescriptionLabelEncoder(IDS, id_network(), residual_to_input=residual_to_input)
    head = keras_drill.OutputLayer(V, label_encoder=encoder)
    inputs = keras.Input((D,))
    model = keras_drill.LanguageModel(keras.Model(inputs, keras.layers.Identity()(inputs)), head)
    model.build((None, D))
    paths = {variable.path for variable in model.trainable_variables}
    assert any("label_embeddings" in path for path in paths) is residual_to_input
    before = {variable.path: np.asarray(variable) for variable in head.variables}
    model.compile(keras.optimizers.Adam(0.02))
    history = model.fit(HIDDEN, TARGETS, epochs=60, verbose=0).history["loss"]
    assert history[-1] < 0.3 * history[0]
    for variable in head.variables:
        moved = (np.asarray(variable) != before[variable.path]).any()
        assert moved == (variable.path in paths), variable.path
    np.testing.assert_array_equal(encoder.descriptions, IDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, precision",
    [(name, precision) for name in HEADS for precision in ("float32", "mixed_bfloat16")],
)
def test_a_network_may_drop_what_it_reads(name, precision, tmp_path):
    """Dropout has a state of its own, which no other network here has."""
    network = keras.Sequential(
        [
            keras.Input((F,)),
            keras.layers.Dropout(0.4, dtype=precision),
            keras.layers.Dense(7, activation="relu", dtype=precision),
            keras.layers.Dropout(0.4, dtype=precision),
            keras.layers.Dense(D, dtype=precision),
        ]
    )
    head = make(name, precision, network=network, embedding_dropout=0.3)
    states = keras.Input((D,))
    model = keras_drill.LanguageModel(keras.Model(states, keras.layers.Identity()(states)), head)
    drawn = [float(head.loss(HIDDEN, TARGETS, training=True)) for _ in range(2)]
    assert abs(drawn[0] - drawn[1]) > 0.001
    model.compile(keras.optimizers.Adam(0.01))
    kernel = np.array(network.layers[-1].kernel)
    before = float(head.loss(HIDDEN, TARGETS, training=False))
    model.fit(HIDDEN, TARGETS, epochs=15, verbose=0)
    assert float(head.loss(HIDDEN, TARGETS, training=False)) < before
    assert np.abs(network.layers[-1].kernel - kernel).max() > 0.01
    labels, log_probs = head.encoded_labels(), np.asarray(head(HIDDEN), "float32")
    np.testing.assert_array_equal(labels, head.encoded_labels())  # nothing is dropped
    new = head.with_words(FEATURES[:3])
    np.testing.assert_allclose(new.encoded_labels()[: len(labels)], labels, rtol=1e-5, atol=1e-6)
    rounding = 1e-5 if precision == "float32" else 0.05  # labels are rounded where they are kept
    folded = np.asarray(head.folded()(HIDDEN), "float32")
    np.testing.assert_allclose(folded, log_probs, atol=rounding)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(np.asarray(loaded.head(HIDDEN), "float32"), log_probs, rtol=1e-6)


def test_a_layer_without_embeddings_has_no_weights_for_words_but_biases():
    head = make("softmax", residual_to_input=False)
    assert head.count_params() == F * D + V + V * F + V
    assert sum(np.prod(v.shape) for v in head.trainable_variables) == F * D + V


@every_head
@pytest.mark.parametrize("residual_to_input", [True, False])
def test_saved_with_its_descriptions_which_are_not_in_the_config(name, residual_to_input, tmp_path):
    encoder = DescriptionLabelEncoder(
        IDS, id_network(), residual_to_input=residual_to_input, name="described"
    )
    inputs = keras.Input((D,))
    model = keras.Model(inputs, HEADS[name](encoder, name="head")(inputs))
    config = encoder.get_config()
    assert config["descriptions"] == {"shape": [V, L], "dtype": "int32"}
    assert "19" not in json.dumps(config["descriptions"])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(HIDDEN), model(HIDDEN))
    again = loaded.get_layer("head").label_encoder
    assert again.descriptions.dtype == "int32"
    np.testing.assert_array_equal(again.descriptions, IDS)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(HIDDEN), model(HIDDEN))


@pytest.mark.parametrize("change", ["int8", "lora", "frozen"])
def test_beside_embeddings_that_are_quantised_have_lora_or_are_frozen(change):
    embedding = keras.layers.Embedding(V, D)
    embedding.build(None)
    if change == "int8":
        embedding.quantize("int8")
    elif change == "lora":
        embedding.enable_lora(2)
        embedding.lora_embeddings_b.assign(RNG.normal(size=(2, D)))
    embedding.trainable = change != "frozen"
    head = keras_drill.OutputLayer(V, embedding, DescriptionLabelEncoder(FEATURES))
    head.build((None, D))
    expected = head.label_encoder.label_network(FEATURES) + embedding(np.arange(V))
    np.testing.assert_allclose(head.encoded_labels(), expected, atol=1e-5)
    assert not head.labels_are_frozen
    head.trainable = False
    assert head.labels_are_frozen is (change != "lora")


def test_a_network_that_ends_in_zeros_leaves_a_trained_model_as_it_was():
    embedding = keras.layers.Embedding(V, D)
    tokens = keras.Input((None,), dtype="int32")
    model = keras_drill.LanguageModel(
        keras.Model(tokens, embedding(tokens)), keras_drill.OutputLayer(V, embedding)
    )
    zeros = keras.layers.Dense(D, kernel_initializer="zeros")
    x = TARGETS[None]
    new = model.with_head(
        keras_drill.OutputLayer(V, embedding, DescriptionLabelEncoder(FEATURES, zeros))
    )
    np.testing.assert_allclose(new(x), model(x), atol=1e-6)
    for options in ({}, {"residual_to_input": False}):
        encoder = DescriptionLabelEncoder(FEATURES, **options)
        with pytest.raises(ValueError, match=r"initially give the same probabilities.*Received"):
            model.with_head(keras_drill.OutputLayer(V, label_encoder=encoder))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DescriptionLabelEncoder(FEATURES, embedding_dropout=1.0), "`embedding_dropout`"),
        (
            lambda: DescriptionLabelEncoder(
                FEATURES, residual_to_input=False, embedding_dropout=0.1
            ),
            "`embedding_dropout` must be 0",
        ),
        (lambda: DescriptionLabelEncoder(FEATURES[:, 0]), "`descriptions` must be numbers"),
        (lambda: DescriptionLabelEncoder(np.array([["a"]])), "`descriptions` must be numbers"),
        (lambda: DescriptionLabelEncoder(IDS), "`network` must be a layer"),
        (
            lambda: keras_drill.OutputLayer(V + 1, label_encoder=DescriptionLabelEncoder(FEATURES)),
            "one row for each of the 32 words",
        ),
        (
            lambda: keras_drill.OutputLayer(
                V, embedding_dim=D + 1, label_encoder=DescriptionLabelEncoder(FEATURES)
            ).build((None, D)),
            "embeddings must have the width 13 of the labels",
        ),
        (
            lambda: keras_drill.OutputLayer(
                V, label_encoder=DescriptionLabelEncoder(FEATURES, keras.layers.Dense(D + 2))
            ).build((None, D)),
            "widths must be equal",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=f"(?s){message}.*Received: "):
        make()
