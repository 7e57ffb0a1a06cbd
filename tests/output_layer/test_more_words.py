"""Words that are added to a trained output layer, and to a model."""

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill import DescriptionLabelEncoder
from keras_drill.compositions import MultiSense
from keras_drill.models import GRULanguageBackbone, TransformerLanguageBackbone

V, NEW, M, D, F, N = 31, 3, 67, 13, 11, 17
RNG = np.random.default_rng(0)
FEATURES, MORE = RNG.normal(size=(V, F)), RNG.normal(size=(NEW, F))
HIDDEN = RNG.normal(size=(N, D))
TOKENS = RNG.integers(0, V, (5, 7))


def encoder(**options):
    return DescriptionLabelEncoder(FEATURES, embedding_dropout=0.3, **options)


def kerbs(**options):
    return keras_drill.KernelizedBayesianSoftmax(
        V, num_senses=M, label_encoder=encoder(), **options
    )


HEADS = {
    "softmax": lambda: keras_drill.OutputLayer(V, label_encoder=encoder()),
    "without bias": lambda: keras_drill.OutputLayer(V, label_encoder=encoder(), use_bias=False),
    "instead": lambda: keras_drill.OutputLayer(
        V, label_encoder=DescriptionLabelEncoder(FEATURES, residual_to_input=False)
    ),
    "padded": lambda: keras_drill.OutputLayer(V, label_encoder=encoder(), pad_labels_to=37),
    "senses": lambda: keras_drill.OutputLayer(
        V, label_encoder=encoder(), composition=MultiSense(V, M)
    ),
    "kerbs": lambda: kerbs(use_bias=True),
    "two senses at least": lambda: kerbs(min_senses=2, variant="inner_product", use_bias=True),
    "mixture": lambda: keras_drill.MixtureOfSoftmaxes(V, num_mixtures=3, label_encoder=encoder()),
}
every_head = pytest.mark.parametrize("name", HEADS)


def make(name):
    head = HEADS[name]()
    head.build((None, D))
    for variable in head.trainable_variables:
        variable.assign(RNG.normal(size=variable.shape, scale=0.5))
    return head


@every_head
def test_other_words_keep_their_scores(name):
    head = make(name)
    new = head.with_words(MORE)
    assert new.vocabulary_size == V + NEW and new(HIDDEN).shape == (N, V + NEW)
    np.testing.assert_allclose(np.exp(new(HIDDEN)).sum(-1), 1, rtol=1e-5)
    num_labels = head.composition.num_labels(V)
    (before, priors), (after, same) = (x._scores(HIDDEN, x.encoded_labels()) for x in (head, new))
    np.testing.assert_allclose(after[..., :num_labels], before, rtol=1e-5, atol=1e-5)
    if priors is not None:
        np.testing.assert_allclose(same, priors, rtol=1e-5)
    mean = 0 if head.bias is None else np.mean(np.asarray(head.bias)[:num_labels])
    if name in ("softmax", "without bias", "padded", "instead"):
        (kernel,) = map(np.asarray, head.label_encoder.label_network.weights)
        expected = HIDDEN @ (MORE @ kernel).T + mean
        np.testing.assert_allclose(after[:, 0, num_labels:], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "kerbs", "two senses at least", "mixture"])
def test_biases_that_are_given_make_words_probable(name):
    new = make(name).with_words(MORE, bias=[-3.0, 50.0, -30.0])
    words = np.asarray(new.top_k(HIDDEN, 1)[1])
    assert (words == V + 1).all()
    assert np.asarray(new(HIDDEN))[:, V + 2].max() < -20
    # Several senses of a new word have the probability of one with that bias.
    if name == "two senses at least":
        biases = np.asarray(new.bias)[M:]
        np.testing.assert_allclose(np.logaddexp(biases[::2], biases[1::2]), [-3, 50, -30])


@pytest.mark.slow
def test_words_can_be_added_again_and_trained_on():
    keras.utils.set_random_seed(3)
    head = make("softmax")
    new = head.with_words(MORE[:1]).with_words(MORE[1:])
    np.testing.assert_allclose(
        np.asarray(new.encoded_labels())[V:], np.asarray(head.with_words(MORE).encoded_labels())[V:]
    )
    np.testing.assert_array_equal(new.label_encoder.has_embedding, [1] * V + [0] * NEW)
    first = float(new.loss(HIDDEN, [V + 2] * N))
    states = keras.Input((D,))
    model = keras_drill.LanguageModel(keras.Model(states, keras.layers.Identity()(states)), new)
    model.compile(keras.optimizers.Adam(0.05))
    model.fit(HIDDEN, np.full(N, V + 2), epochs=5, verbose=0)
    assert float(new.loss(HIDDEN, [V + 2] * N, training=False)) < first - 1
    assert float(head.loss(HIDDEN, [3] * N)) < 20  # shares nothing


def backbone(kind):
    """A backbone, and its embedding."""
    if kind == "gru":
        model = GRULanguageBackbone(V, D, 11, 2)
        return model, model.embedding
    if kind == "transformer":
        model = TransformerLanguageBackbone(
            V, D, num_layers=1, num_heads=1, feed_forward_dim=11, pad_id=0
        )
        return model, model.embedding
    embedding, dense = keras.layers.Embedding(V, D, name="words"), keras.layers.Dense(D)
    tokens = keras.Input((None,), dtype="int32")
    if kind == "sequential":
        return keras.Sequential([tokens, embedding, dense]), embedding
    return keras.Model(tokens, dense(embedding(tokens))), embedding


@pytest.mark.parametrize("kind", ["gru", "transformer", "sequential", "functional"])
@pytest.mark.parametrize("is_tied", [True, False])
def test_a_model_reads_and_writes_new_words(kind, is_tied, tmp_path):
    keras.utils.set_random_seed(3)
    reader, embedding = backbone(kind)
    head = keras_drill.OutputLayer(V, embedding if is_tied else None, encoder())
    model = keras_drill.LanguageModel(reader, head, label_smoothing=0.1)
    before = np.asarray(model(TOKENS))
    new = model.with_words(MORE, read_as=2, bias=-2.0)
    after = np.asarray(new(TOKENS))
    assert after.shape == (*TOKENS.shape, V + NEW) and new.label_smoothing == 0.1
    shift = before - after[..., :V]
    np.testing.assert_allclose(shift, shift[..., :1].repeat(V, -1), atol=1e-5)
    assert shift.min() > -1e-6 and shift.max() > 0  # new words take what the others have
    np.testing.assert_array_equal(new(np.where(TOKENS == 2, V + 1, TOKENS)), after)
    if is_tied:
        assert new.head.embedding is not embedding
        assert any(layer is new.head.embedding for layer in new.backbone._flatten_layers())
    new.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(TOKENS), after)


def test_what_is_refused():
    plain = keras_drill.OutputLayer(V)
    plain.build((None, D))
    tied = keras_drill.OutputLayer(V, keras.layers.Embedding(V, D), encoder())
    tied.build((None, D))
    senses = keras_drill.KernelizedBayesianSoftmax(
        V,
        keras_drill.SenseEmbedding(V, D, num_senses=M, weighting="usage"),
        label_encoder=encoder(),
    )
    senses.build((None, D))
    features = keras_drill.LanguageModel(keras.Sequential([keras.Input((D,))]), make("softmax"))
    for add, message in [
        (lambda: plain.with_words(MORE), "must be a keras_drill.DescriptionLabelEncoder"),
        (lambda: make("softmax").with_words(MORE[:, 1:]), r"of shape \('n', 11\)"),
        (lambda: make("softmax").with_words(MORE[:0]), "at least one new word"),
        (lambda: make("without bias").with_words(MORE, bias=1.0), "`bias` must be None"),
        (lambda: tied.with_words(MORE), "`embedding` must be the larger"),
        (
            lambda: tied.with_words(MORE, embedding=keras.layers.Embedding(V, D)),
            "one row for each of the 34",
        ),
        (
            lambda: senses.with_words(MORE, embedding=keras.layers.Embedding(V + NEW, D)),
            "must not be a SenseEmbedding",
        ),
        (lambda: features.with_words(MORE, read_as=V), "`read_as` must be the id of a word"),
        (lambda: features.with_words(MORE, read_as=0), "To add words, the config of the backbone"),
    ]:
        with pytest.raises(ValueError, match=f"(?s){message}.*Received: "):
            add()
