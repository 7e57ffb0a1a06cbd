"""Words' log-probabilities from their labels'."""

import keras
import numpy as np
import pytest

from keras_drill.ops.graph import fuse
from keras_drill.ops.word_log_probs import word_log_probs

N, V, M, S = 5, 7, 11, 3


def labels_of_words(rng):
    """`[V, S]` of labels in any order and which there are, where every word has at least one."""
    words = rng.permutation(np.r_[np.arange(V), np.arange(M - V)])
    columns, mask = np.zeros((V, S), "int32"), np.zeros((V, S), bool)
    for v in range(V):
        found = np.flatnonzero(words == v)
        columns[v, : len(found)], mask[v, : len(found)] = found, True
    return columns, mask


def fused(*arrays):
    if keras.backend.backend() != "tensorflow":
        return word_log_probs(*arrays, compiled=fuse)
    import tensorflow as tf

    return tf.function(lambda *tensors: word_log_probs(*tensors, compiled=fuse))(*arrays)


@pytest.mark.parametrize("compiled", [False, True])
def test_words_have_the_sum_of_their_labels_probabilities(compiled):
    rng = np.random.default_rng(0)
    columns, mask = labels_of_words(rng)
    labels = 40 * rng.normal(size=(N, M)).astype("float32") - 300  # which underflow by themselves
    function = fused if compiled else word_log_probs
    found = function(labels, columns, mask)
    wide = labels.astype("float64")
    expected = [np.logaddexp.reduce(wide[:, columns[v, mask[v]]], axis=-1) for v in range(V)]
    np.testing.assert_allclose(found, np.transpose(expected), rtol=2e-7)


def test_a_word_is_impossible_only_if_all_its_labels_are():
    columns = np.array([[0, 1], [2, 3], [4, 0]], "int32")
    mask = np.array([[True, True], [True, True], [True, False]])
    labels = np.array([[-np.inf, -np.inf, -np.inf, -2.0, -3.0]], "float32")
    found = word_log_probs(labels, columns, mask)
    np.testing.assert_array_equal(found, [[-np.inf, -2.0, -3.0]])
