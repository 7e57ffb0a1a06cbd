import importlib.util
import itertools

import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.analysis import (
    find_argmaxable_words,
    largest_lead,
    measure_argmaxable_words,
)

linprog = pytest.importorskip("scipy.optimize").linprog


def _by_full_program(labels, bias, bound, min_lead):
    """Which words can be ahead by `min_lead`: the whole linear program of every word."""
    argmaxable = []
    for word in range(len(labels)):
        others = np.delete(np.arange(len(labels)), word)
        solved = linprog(
            c=np.append(np.zeros(labels.shape[1]), -1.0),
            A_ub=np.column_stack([labels[others] - labels[word], np.ones(len(others))]),
            b_ub=bias[word] - bias[others],
            bounds=[(-bound, bound)] * labels.shape[1] + [(None, None)],
        )
        argmaxable.append(-solved.fun > min_lead)
    return np.array(argmaxable)


@pytest.mark.parametrize(
    "seed",
    [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))],
)
@pytest.mark.parametrize("dim, with_bias", list(itertools.product((1, 2, 5), (0, 1))))
def test_agrees_with_the_whole_linear_programs(seed, dim, with_bias):
    generator = np.random.default_rng(seed)
    labels, bias = generator.normal(size=(101, dim)), with_bias * generator.normal(size=101)
    words = find_argmaxable_words(labels, bias, bound=7.0)
    expected = _by_full_program(labels, bias, 7.0, words.min_lead)
    np.testing.assert_array_equal(words.found, expected)
    np.testing.assert_array_equal(words.unargmaxable, ~expected)
    assert not words.undecided.any() and not words.on_text.any()
    assert words.unargmaxable.any()


def test_mixtures_of_other_words_are_unargmaxable():
    generator = np.random.default_rng(3)
    corners = generator.normal(size=(53, 17))
    weights = generator.dirichlet(np.ones(53), size=13)
    labels = np.concatenate([corners, weights @ corners])
    words = find_argmaxable_words(labels)
    assert words.unargmaxable[53:].all()
    # A little bias above that of what they are made of, and they are ahead at h = 0.
    bias = np.concatenate([np.zeros(53), np.full(13, 0.1) * (np.arange(13) == 7)])
    np.testing.assert_array_equal(
        np.flatnonzero(find_argmaxable_words(labels, bias).unargmaxable[53:]),
        np.delete(np.arange(13), 7),
    )


def test_equal_words_are_never_ahead_of_each_other():
    labels = np.random.default_rng(3).normal(size=(31, 7))
    labels /= np.linalg.norm(
        labels, axis=1, keepdims=True
    )  # no point of a sphere is between others
    labels[29] = labels[11]
    unargmaxable = find_argmaxable_words(labels).unargmaxable
    np.testing.assert_array_equal(np.flatnonzero(unargmaxable), [11, 29])


def test_found_hidden_states_and_limits_are_proofs():
    generator = np.random.default_rng(3)
    labels, bias = generator.normal(size=(211, 5)), generator.normal(size=211)
    for word in range(0, 211, 7):
        lead = largest_lead(word, labels, bias, 3.0, np.zeros(5), 1e-6)
        scores = labels @ lead.hidden + bias
        assert np.isclose(scores[word] - np.delete(scores, word).max(), lead.reached)
        assert np.abs(lead.hidden).max() <= 3 and lead.reached <= lead.limit + 1e-9
        assert lead.reached > 1e-6 or lead.limit <= 1e-6
        hidden = generator.uniform(-3, 3, size=(997, 5))  # nowhere is it ahead by more
        scores = hidden @ labels.T + bias
        ahead = scores[:, word] - np.delete(scores, word, axis=1).max(axis=1)
        assert ahead.max() <= lead.limit or lead.reached > 1e-6


def test_a_tighter_bound_leaves_fewer_words():
    generator = np.random.default_rng(3)
    labels, bias = generator.normal(size=(101, 5)), 3 * generator.normal(size=101)
    near = find_argmaxable_words(labels, bias, bound=0.3).unargmaxable
    far = find_argmaxable_words(labels, bias, bound=300.0).unargmaxable
    assert near.sum() > far.sum() and not (far & ~near).any()


def test_known_words_are_not_searched_and_programs_can_be_rationed(monkeypatch):
    labels = np.random.default_rng(3).normal(size=(101, 2))
    every = find_argmaxable_words(labels)
    known = find_argmaxable_words(labels, on_text=every.found, max_programs=7)
    assert known.counts() == {
        "on_text": every.found.sum(),
        "found": 0,
        "unargmaxable": 7,
        "undecided": every.unargmaxable.sum() - 7,
    }
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no SciPy
    assert not find_argmaxable_words(labels).unargmaxable.any()


def test_measured_on_an_output_layer():
    generator = np.random.default_rng(3)
    hidden = generator.normal(size=(307, 3)).astype("float32")
    head = keras_drill.OutputLayer(53, embeddings_initializer="random_normal")
    head(hidden)
    head.bias.assign(generator.normal(size=53))
    words = measure_argmaxable_words(head, hidden)
    best = np.unique(np.asarray(head(hidden)).argmax(-1))
    np.testing.assert_array_equal(np.flatnonzero(words.on_text), best)
    assert words.unargmaxable.any() and not words.undecided.any()
    capped = keras_drill.OutputLayer(53, logit_soft_cap=3.0)
    capped(hidden)
    capped.set_weights(head.get_weights())
    assert measure_argmaxable_words(capped, hidden).counts() == words.counts()


def test_no_word_of_a_mixture_is_called_unargmaxable():
    hidden = np.random.default_rng(3).normal(size=(307, 3)).astype("float32")
    head = keras_drill.MixtureOfSoftmaxes(53, num_mixtures=2)
    head(hidden)
    words = measure_argmaxable_words(head, hidden)
    assert words.on_text.any() and words.bound is None
    np.testing.assert_array_equal(words.undecided, ~words.on_text)


@pytest.mark.parametrize("variant", ["paper", "inner_product"])
def test_words_with_several_senses_are_found_in_their_directions(variant):
    generator = np.random.default_rng(3)
    hidden = generator.normal(size=(7, 5)).astype("float32")
    head = keras_drill.KernelizedBayesianSoftmax(53, num_senses=101, variant=variant)
    head(hidden)
    labels = generator.normal(size=(101, 5))
    labels[[11, 11 + 53]] = 0.01 * labels[[11, 11 + 53]]  # a word in the middle of the others
    head.label_embeddings.assign(labels)
    words = measure_argmaxable_words(head, hidden)
    sizes = words.counts()
    assert words.undecided[11] and sizes["unargmaxable"] == 0 and words.bound == 100
    assert sizes["found"] > 20 and not (words.found & words.on_text).any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"labels": np.ones(3)}, "`labels` must be a matrix"),
        ({"bias": np.ones(2)}, "`bias` must have one value"),
        ({"labels": np.full((3, 2), np.inf)}, "must be finite"),
        ({"bound": 0}, "must be positive"),
        ({"min_lead": 0}, "must be positive"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=rf"{message}.* Received: "):
        find_argmaxable_words(**{"labels": np.eye(3, 2), **arguments})
