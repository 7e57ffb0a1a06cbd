import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.analysis import (
    WordSenses,
    collect_hidden,
    collect_word_senses,
    example_contexts,
    nearest_words,
    project_to_plane,
    words_by_senses,
)

V, M, D = 23, 53, 7


def _model(variant="paper"):
    keras.utils.set_random_seed(3)
    backbone = keras.Sequential([keras.layers.Embedding(V, D), keras.layers.Dense(D)])
    head = keras_drill.KernelizedBayesianSoftmax(V, num_senses=M, variant=variant)
    model = keras_drill.LanguageModel(backbone, head)
    model.build((3, 5))
    generator = np.random.default_rng(3)
    for variable in head.trainable_variables:
        variable.assign(generator.normal(size=variable.shape))
    return model


def _batches():
    generator = np.random.default_rng(5)
    return [tuple(generator.integers(V, size=(2, 3, 11)).astype("int32")) for _ in range(3)]


def test_words_by_senses():
    head = _model().head
    numbers = words_by_senses(np.asarray(head.allocation.sense_to_word), V)
    assert {senses: len(words) for senses, words in numbers.items()} == {2: 16, 3: 7}
    assert np.concatenate(list(numbers.values())).tolist() == [*range(7, 23), *range(7)]
    with pytest.raises(ValueError, match=r"must be ids of words in .* Received: ids from 0 to 5"):
        words_by_senses(np.array([0, 5]), 3)


@pytest.mark.parametrize("variant", ["paper", "reference", "inner_product"])
def test_senses_of_words_in_a_text(variant):
    model = _model(variant)
    model.head.allocation.assign(np.sort(np.arange(M) % V))
    found = collect_word_senses(model, _batches(), [11, 2])
    places, targets, hidden = collect_hidden(model, _batches())
    sense_log_probs = keras.ops.convert_to_numpy(model.head.sense_log_probs(hidden))
    for word, senses in zip((11, 2), found, strict=True):
        here = targets == word
        assert senses.word == word and here.sum() > 1
        np.testing.assert_array_equal(senses.places, places[here])
        np.testing.assert_array_equal(senses.hidden, hidden[here])
        np.testing.assert_array_equal(
            senses.senses, np.flatnonzero(np.asarray(model.head.allocation.sense_to_word) == word)
        )
        joint = np.exp(sense_log_probs[here][:, senses.senses])
        expected = joint / joint.sum(1, keepdims=True)
        np.testing.assert_allclose(senses.posteriors, expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(senses.shares, expected.mean(0), rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(senses.most_probable, expected.argmax(1))


def test_a_word_that_does_not_occur_has_no_places():
    tokens, targets = _batches()[0]
    found = collect_word_senses(_model(), [(tokens, np.where(targets == 3, 4, targets))], [3])[0]
    assert found.posteriors.shape == (0, 3) and found.hidden.shape == (0, D)


def test_a_model_with_one_sense_a_word_is_refused():
    model = keras_drill.LanguageModel(
        keras.Sequential([keras.layers.Embedding(V, D)]), keras_drill.OutputLayer(V)
    )
    with pytest.raises(
        ValueError, match=r"`model` must have a head with several .* Received: a head of type Out"
    ):
        collect_word_senses(model, _batches(), [3])


def test_nearest_words_count_once_and_never_the_word_itself():
    generator = np.random.default_rng(3)
    labels, sense_to_word = generator.normal(size=(M, D)), np.arange(M) % V
    labels[5] = 3 * labels[30]  # of words 5 and 7
    labels[5 + V] = labels[30] + 0.01  # word 5 again
    nearest = nearest_words(labels, sense_to_word, sense=30, k=V)
    words, cosines = zip(*nearest, strict=True)
    assert nearest[0] == (5, pytest.approx(1))
    assert sorted(words) == [word for word in range(V) if word != 7]
    assert list(cosines) == sorted(cosines, reverse=True)
    unit = labels / np.linalg.norm(labels, axis=1, keepdims=True)
    for word, cosine in nearest:
        assert cosine == pytest.approx((unit[sense_to_word == word] @ unit[30]).max())


def test_nearest_words_survive_zeros_and_wrong_input():
    labels = np.zeros((3, 2))
    assert nearest_words(labels, np.array([0, 1, 2]), 0, 5) == [(1, 0.0), (2, 0.0)]
    with pytest.raises(ValueError, match=r"`sense` must be in .* Received: sense=3"):
        nearest_words(labels, np.array([0, 1, 2]), 3, 5)
    with pytest.raises(ValueError, match=r"`sense_to_word` must have one word .* Received: "):
        nearest_words(labels, np.array([0, 1]), 0, 5)


def test_projection_is_that_of_the_covariance():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(53, 11)) * np.geomspace(5, 0.1, 11) + 3
    points, shares = project_to_plane(vectors)
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    expected = (vectors - vectors.mean(0)) @ directions[:, :-3:-1]
    np.testing.assert_allclose(np.abs(points), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(shares, values[:-3:-1] / values.sum())
    assert np.abs(points).max(0) == pytest.approx(points.max(0))  # signs are settled


def test_projection_of_equal_or_too_few_vectors():
    points, shares = project_to_plane(np.ones((5, 3)))
    assert shares == (0, 0) and not points.any()
    for shape in ((2, 3), (3, 1), (3,)):
        with pytest.raises(ValueError, match=r"`vectors` must be at least 3 .* Received: "):
            project_to_plane(np.ones(shape))


def test_contexts_differ_and_the_most_probable_come_first():
    ids = np.array([1, 9, 2, 1, 9, 2, 3, 9, 4, 9])
    contexts = example_contexts(ids, np.array([1, 4, 7, 9]), np.array([0.5, 0.9, 0.7, 0.8]), 9, 1)
    assert contexts == [(4, 0.9), (9, 0.8), (7, 0.7)]
    assert example_contexts(ids, np.array([1, 4]), np.array([0.5, 0.9]), 1) == [(4, 0.9)]
    with pytest.raises(ValueError, match=r"`probabilities` must have one value .* Received: "):
        example_contexts(ids, np.array([1, 4]), np.array([0.5]), 1)


def test_shares_of_senses():
    posteriors = np.array([[0.9, 0.1], [0.6, 0.4], [0.0, 1.0]])
    senses = WordSenses(3, np.array([5, 7]), np.arange(3), np.zeros((3, 2)), posteriors)
    assert senses.shares == pytest.approx([0.5, 0.5])
    assert senses.most_probable.tolist() == [0, 0, 1]
