"""Output layers whose words have several labels, or whose tokens have several contexts."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from tests.gradients import value_and_gradients

V, M, K, D, H, B, T = 31, 67, 3, 13, 17, 5, 7


def sense_head(**options):
    head = keras_drill.KernelizedBayesianSoftmax(V, num_senses=M, tile_size=8, **options)
    head.build((None, None, D))
    head.embeddings.assign(np.random.default_rng(3).normal(size=(M, D)))
    if head.theta is not None:
        head.theta.assign(np.linspace(-3, 3, M))
    return head


def mixture_head(**options):
    options = {"context_dim": D, "embedding_dim": D, **options}
    head = keras_drill.MixtureOfSoftmaxes(V, num_mixtures=K, tile_size=8, **options)
    head.build((None, None, D))
    return head


HEADS = {
    "paper": lambda: sense_head(),
    "reference": lambda: sense_head(variant="reference", use_bias=True),
    "without kernel": lambda: sense_head(variant="inner_product"),
    "DRILL labels": lambda: sense_head(label_encoder=keras_drill.ResidualLabelEncoder(depth=2)),
    "mixture": mixture_head,
    "mixture, soft cap": lambda: mixture_head(logit_soft_cap=5.0),
    "mixture of DRILL": lambda: mixture_head(
        label_encoder=keras_drill.ResidualLabelEncoder(depth=2, dual=True)
    ),
}
every_head = pytest.mark.parametrize("name", HEADS)


def make_data(seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(B, T, D)).astype("float32")
    return hidden, rng.integers(0, V, (B, T)), rng.random((B, T)).astype("float32")


@pytest.mark.slow
@every_head
def test_probabilities_are_normalised_and_the_loss_is_theirs(name):
    head = HEADS[name]()
    hidden, targets, weights = make_data()
    log_probs = np.asarray(head(hidden), "float64")
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)
    chosen = np.take_along_axis(log_probs, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(head.log_prob(hidden, targets), chosen, rtol=2e-5, atol=1e-5)
    loss = head.loss(hidden, targets, weights, training=False)
    np.testing.assert_allclose(loss, -(weights * chosen).mean(), rtol=1e-5)
    smoothed = -weights * (0.9 * chosen + 0.1 * log_probs.mean(-1))
    loss, found, ranks = head.loss_log_prob_and_rank(hidden, targets, weights, label_smoothing=0.1)
    np.testing.assert_allclose(loss, smoothed.mean(), rtol=1e-5)
    np.testing.assert_allclose(found, chosen, rtol=2e-5, atol=1e-5)
    np.testing.assert_array_equal(ranks, (log_probs > chosen[..., None]).sum(-1))


@every_head
def test_the_fused_gradients_are_those_of_the_log_probabilities(name):
    head = HEADS[name]()
    hidden, targets, weights = make_data()
    one_hot = np.eye(V, dtype="float32")[targets]
    variables = head.trainable_variables

    def materialised(hidden):
        return -ops.mean(weights * ops.sum(head(hidden) * one_hot, axis=-1))

    expected = value_and_gradients(materialised, variables, hidden)
    actual = value_and_gradients(lambda h: head.loss(h, targets, weights), variables, hidden)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-5)
    for variable, a, b in zip(variables, actual[1], expected[1], strict=True):
        scale = np.abs(b).max()
        np.testing.assert_allclose(a, b, atol=3e-5 * scale, err_msg=variable.path)
    np.testing.assert_allclose(actual[2], expected[2], atol=3e-5 * np.abs(expected[2]).max())


def test_a_plain_keras_loss_trains_theta_as_the_fused_one_does_from_its_initial_value():
    head = sense_head()
    head.theta.assign(np.full(M, 1e-8))
    hidden, targets, _ = make_data()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    plain = value_and_gradients(lambda h: loss(targets, head(h)), [head.theta], hidden)
    fused = value_and_gradients(lambda h: head.loss(h, targets), [head.theta], hidden)
    np.testing.assert_allclose(plain[1][0], fused[1][0], atol=1e-5 * np.abs(fused[1][0]).max())


@every_head
def test_folded_it_gives_the_same(name):
    head = HEADS[name]()
    hidden = make_data()[0]
    np.testing.assert_allclose(head.folded()(hidden), head(hidden), atol=2e-6)


def test_sense_probabilities_add_up_to_the_words():
    head = sense_head()
    rng = np.random.default_rng(5)
    moved = np.concatenate([np.arange(V), rng.permutation(np.repeat(np.arange(V), 3))[: M - V]])
    head.allocation.assign(moved)
    hidden, words, _ = make_data()
    senses = np.exp(np.asarray(head.sense_log_probs(hidden), "float64"))
    np.testing.assert_allclose(senses.sum(-1), 1, rtol=1e-5)
    by_word = np.zeros((B, T, V))
    np.add.at(by_word, (..., moved), senses)
    np.testing.assert_allclose(np.exp(head(hidden)), by_word, rtol=1e-4, atol=1e-7)

    posteriors = np.asarray(head.sense_posteriors(hidden, words))
    table = np.asarray(head.allocation.senses_of_word)[words]  # [B, T, S]
    expected = np.take_along_axis(senses, np.maximum(table, 0), -1) * (table >= 0)
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(posteriors, expected, rtol=1e-4, atol=1e-6)


def test_a_single_sense_without_kernel_is_the_softmax():
    senses = keras_drill.KernelizedBayesianSoftmax(
        V, num_senses=V, max_senses=1, variant="inner_product"
    )
    softmax = keras_drill.SoftmaxOutput(V, use_bias=False)
    hidden = make_data()[0]
    senses.build(hidden.shape)
    softmax.build(hidden.shape)
    senses.embeddings.assign(softmax.embeddings)
    np.testing.assert_allclose(senses(hidden), softmax(hidden), atol=2e-6)


def test_one_component_is_the_softmax_of_its_context():
    head = keras_drill.MixtureOfSoftmaxes(V, num_mixtures=1)
    hidden = make_data()[0]
    head.build(hidden.shape)
    softmax = keras_drill.SoftmaxOutput(V)
    softmax.build(hidden.shape)
    softmax.embeddings.assign(head.embeddings)
    contexts = np.tanh(hidden @ np.asarray(head.composition.latent_kernel))
    np.testing.assert_allclose(head(hidden), softmax(contexts), atol=2e-6)


def test_dropout_of_contexts_has_one_mask_for_all_steps():
    head = mixture_head(context_dropout=0.5)
    hidden = np.repeat(make_data()[0][:, :1], T, axis=1)
    outputs = np.asarray(head(hidden, training=True))
    np.testing.assert_allclose(outputs, np.repeat(outputs[:, :1], T, axis=1), atol=1e-6)
    assert not np.allclose(outputs[:, 0], head(hidden)[:, 0], atol=1e-3)


@pytest.mark.slow
def test_training_records_the_use_of_senses():
    head = sense_head()
    hidden, targets, weights = make_data()
    weights[2] = 0
    for _ in range(2):
        head.loss(hidden, targets, weights)
    head.loss(hidden, targets, weights, training=False)
    log_probs = np.asarray(head.log_prob(hidden, targets))
    posteriors = np.asarray(head.sense_posteriors(hidden, targets))
    counted = weights > 0
    expected = {
        "word_count": np.zeros(V),
        "log_prob_sum": np.zeros(V),
        "prob_sum": np.zeros(V),
        "usage_sum": np.zeros(M),
    }
    words = targets[counted]
    np.add.at(expected["word_count"], words, 2)
    np.add.at(expected["log_prob_sum"], words, 2 * log_probs[counted])
    np.add.at(expected["prob_sum"], words, 2 * np.exp(log_probs[counted]))
    table = np.asarray(head.allocation.senses_of_word)[words]
    np.add.at(expected["usage_sum"], np.maximum(table, 0), 2 * posteriors[counted])
    for name, value in expected.items():
        actual = getattr(head.allocation, name)
        np.testing.assert_allclose(actual, value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_single_sense_takes_all_of_its_words_use():
    head = keras_drill.KernelizedBayesianSoftmax(V, num_senses=V, max_senses=1)
    head.build((None, None, D))
    hidden, targets, weights = make_data()
    head.loss(hidden, targets, weights)
    counts = np.bincount(targets.ravel(), minlength=V)
    np.testing.assert_allclose(head.allocation.word_count, counts)
    np.testing.assert_allclose(head.allocation.usage_sum, counts)


def test_a_moved_sense_counts_for_its_new_word_without_another_trace():
    head = sense_head()
    hidden, targets, _ = make_data()
    targets[0, 0] = V - 1
    before = np.asarray(head.log_prob(hidden, targets))
    moved = np.asarray(head.allocation.sense_to_word).copy()
    moved[V] = V - 1  # the second sense of word 0
    head.allocation.assign(moved)
    senses = np.exp(np.asarray(head.sense_log_probs(hidden), "float64"))
    expected = np.log((senses * (moved == targets[..., None])).sum(-1))
    np.testing.assert_allclose(head.log_prob(hidden, targets), expected, rtol=1e-4)
    assert not np.allclose(before, expected)


@pytest.mark.parametrize("width", [7, 101])
def test_senses_begin_in_a_range_of_their_width(width):
    senses = keras_drill.SenseEmbedding(211, width)
    senses.build()
    largest = np.abs(np.asarray(senses.embeddings)).max()
    assert 0.95 * width**-0.5 < largest <= width**-0.5
    again = keras_drill.SenseEmbedding.from_config(senses.get_config())
    assert again.get_config() == senses.get_config()
    # What was saved before there was this range has its own.
    old = {**senses.get_config(), "embeddings_initializer": "uniform"}
    before = keras_drill.SenseEmbedding.from_config(old)
    before.build()
    assert 0.045 < np.abs(np.asarray(before.embeddings)).max() <= 0.05


def tied_model():
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=M, name="senses")
    head = keras_drill.KernelizedBayesianSoftmax(V, embedding)
    backbone = keras_drill.models.GRULanguageBackbone(V, D, H, 2, embedding=embedding, seed=1)
    return keras_drill.LanguageModel(backbone, head), embedding


def shares_everything(model):
    embedding, head = model.backbone.embedding, model.head
    return (
        head.embedding is embedding
        and head.allocation is embedding.allocation
        and head.theta is embedding.score_parameters[0]
        and len({id(v) for v in model.variables}) == len(model.variables)
        and sum(v.name == "sense_to_word" for v in model.variables) == 1
    )


@pytest.mark.slow
def test_senses_stay_shared_through_saving_and_configuration(tmp_path):
    model, embedding = tied_model()
    tokens = make_data()[1]
    expected = np.asarray(model(tokens))
    assert shares_everything(model)
    moved = np.asarray(embedding.allocation.sense_to_word).copy()
    moved[V] = 5
    embedding.allocation.assign(moved)
    expected = np.asarray(model(tokens))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert shares_everything(loaded)
    np.testing.assert_array_equal(loaded.head.allocation.sense_to_word, moved)
    np.testing.assert_allclose(loaded(tokens), expected, atol=1e-6)
    again = keras_drill.LanguageModel.from_config(model.get_config())
    again(tokens)
    assert shares_everything(again)


def test_senses_stay_shared_in_a_cloned_functional_model():
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=M, weighting="usage", name="senses")
    tokens = keras.Input((T,), dtype="int32")
    hidden = keras.layers.Dense(D)(embedding(tokens))
    head = keras_drill.KernelizedBayesianSoftmax(V, embedding, name="head")
    model = keras.Model(tokens, head(hidden))
    clone = keras.models.clone_model(model)
    cloned, head = clone.get_layer("senses"), clone.get_layer("head")
    assert head.embedding is cloned is not embedding
    assert head.allocation is cloned.allocation is not embedding.allocation
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(make_data()[1]), model(make_data()[1]), atol=1e-6)


def test_usage_weighs_the_senses_of_a_word():
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=M)
    embedding.build(None)
    usage = np.random.default_rng(6).random(M)
    embedding.allocation.usage.assign(usage)
    senses = np.asarray(embedding.embeddings)
    table = np.asarray(embedding.allocation.senses_of_word)
    found = np.asarray(embedding(np.arange(V, dtype="float32")))  # as a Sequential would ask
    for word in range(V):
        mine = table[word][table[word] >= 0]
        expected = (usage[mine, None] * senses[mine]).sum(0) / usage[mine].sum()
        np.testing.assert_allclose(found[word], expected, atol=1e-6)


def test_a_single_sense_is_embedded_as_it_is_without_a_warning(recwarn):
    embedding = keras_drill.SenseEmbedding(V, D, num_senses=V, max_senses=1)
    words, context = np.array([3, 1, 7]), np.ones((3, D), "float32")
    expected = ops.convert_to_numpy(embedding(words))
    np.testing.assert_array_equal(expected, ops.convert_to_numpy(embedding.embeddings)[words])
    np.testing.assert_array_equal(embedding(words, context), expected)
    assert not [w for w in recwarn.list if "softmax" in str(w.message)]
    senses = embedding.look_up(words)
    d_context, d_senses, _ = embedding.weigh_gradient(context, *senses[:2], senses[3:], context)
    np.testing.assert_array_equal(d_context, np.zeros((3, D)))
    np.testing.assert_array_equal(d_senses[:, 0], context)


def bad(message, make):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_arguments():
    kerbs = keras_drill.KernelizedBayesianSoftmax
    bad(r"`variant` must be .* Received: variant='gauss'", lambda: kerbs(V, variant="gauss"))
    bad(
        r"`num_senses` must be the number of .* Received: num_senses=30",
        lambda: kerbs(V, num_senses=V - 1),
    )
    bad(r"`num_senses` must be the number of", lambda: kerbs(V, num_senses=4 * V + 1))
    bad(r"`min_senses` must be at least 1 .* max_senses=2", lambda: kerbs(V, None, 62, 3, 2))
    mixture = keras_drill.MixtureOfSoftmaxes
    bad(r"`num_mixtures` .* Received: num_mixtures=0", lambda: mixture(V, num_mixtures=0))
    bad(r"`context_dropout` must be in", lambda: mixture(V, context_dropout=1.0))
    senses = keras_drill.SenseEmbedding(V, D)
    bad(r"`weighting` must be", lambda: keras_drill.SenseEmbedding(V, D, weighting="mean"))
    bad(
        r"`label_encoder` must be None if .* weighting=\"usage\"",
        lambda: kerbs(V, senses, label_encoder=keras_drill.ResidualLabelEncoder(depth=2)),
    )
    bad(
        r"`num_senses` must be None or 93, as in `embedding`. Received: num_senses=67",
        lambda: kerbs(V, senses, num_senses=M),
    )
    bad(r"`variant` must be None or 'paper'", lambda: kerbs(V, senses, variant="x"))
    bad(r"`dynamic_allocation` must be None or", lambda: kerbs(V, senses, dynamic_allocation=False))
    bad(r"`vocabulary_size` must be 31, .*=37", lambda: kerbs(37, senses))
    composition = keras_drill.compositions.MultiSense(V)
    head = keras_drill.OutputLayer(37, composition=composition)
    bad(r"`vocabulary_size` must be 31", lambda: head.build((None, D)))
    bad(
        r"`score` must equal the score of the embedding, KerBSKernel",
        lambda: keras_drill.OutputLayer(V, senses, score=keras_drill.scores.InnerProduct()),
    )
    allocation = sense_head().allocation
    bad(r"`sense_to_word` must have shape \(67,\)", lambda: allocation.assign(np.arange(V)))
    bad(r"must give every word 1 to 4 senses. Received: 0", lambda: allocation.assign([1] * M))
