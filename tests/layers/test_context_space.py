import keras
import numpy as np
import pytest

from keras_drill.layers import ContextSpace

N, D, DIM, V = 211, 13, 7, 3


def states(seed=0):
    random = np.random.default_rng(seed)
    mixed = random.normal(size=(N, D)) @ random.normal(size=(D, D)) + 2 * np.arange(D)
    return mixed, random.integers(0, V, N)


def test_all_axes_and_no_whitening_keep_directions():
    """With every axis a context is the centred state, turned and made as long as it should be."""
    given, _ = states()
    space = ContextSpace(D, length=3.0)
    space.adapt(given)
    contexts = np.asarray(space(given))
    np.testing.assert_allclose(np.linalg.norm(contexts, axis=-1), 3.0, rtol=1e-5)
    centred = given - given.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=-1, keepdims=True)
    np.testing.assert_allclose(contexts @ contexts.T, 9 * unit @ unit.T, atol=1e-3)


def test_whitened_axes_have_even_variance():
    given, _ = states()
    space = ContextSpace(DIM, whiten=True)
    space.adapt(given)
    x = (given - np.asarray(space.mean)) @ np.asarray(space.axes)
    np.testing.assert_allclose(x.T @ x / N, np.eye(DIM), atol=1e-4)


def test_axes_are_the_principal_ones():
    given, _ = states()
    space = ContextSpace(DIM)
    space.adapt(given)
    centred = given - given.mean(axis=0)
    _, _values, axes = np.linalg.svd(centred, full_matrices=False)
    cosines = np.asarray(space.axes).T @ axes[:DIM].T
    np.testing.assert_allclose(np.abs(cosines), np.eye(DIM), atol=1e-4)


def test_means_by_word_leave_nothing_of_the_word():
    given, words = states()
    shifted = given + 100.0 * np.arange(V)[words, None]
    contexts = []
    for some in (given, shifted):
        space = ContextSpace(DIM, num_words=V)
        space.adapt(some, words)
        contexts.append(np.asarray(space(some, words)))
    np.testing.assert_allclose(np.abs(contexts[0]), np.abs(contexts[1]), atol=1e-2)


def test_saved_and_loaded(tmp_path):
    given, _ = states()
    space = ContextSpace(DIM, whiten=True, length=5.0)
    space.adapt(given)
    inputs = keras.Input((D,))
    keras.Model(inputs, space(inputs)).save(tmp_path / "space.keras")
    loaded = keras.saving.load_model(tmp_path / "space.keras")
    np.testing.assert_array_equal(loaded(given.astype("float32")), space(given.astype("float32")))


def test_a_state_that_is_the_mean_has_no_direction():
    given, _ = states()
    space = ContextSpace(DIM)
    space.adapt(given)
    assert np.abs(np.asarray(space(np.asarray(space.mean)))).max() == 0


def test_bad_arguments():
    given, words = states()
    with pytest.raises(ValueError, match=r"`length` must be positive\. Received: length=0"):
        ContextSpace(DIM, length=0)
    with pytest.raises(ValueError, match=r"`dim` must be at most the width of the states, 13"):
        ContextSpace(17).adapt(given)
    with pytest.raises(ValueError, match=r"N > `dim`, which is 7.*Received: states of shape"):
        ContextSpace(DIM).adapt(given[:DIM])
    with pytest.raises(ValueError, match=r"`words` must be word ids from 0 to .* 2"):
        ContextSpace(DIM, num_words=V).adapt(given)
    with pytest.raises(ValueError, match=r"`words` must be None"):
        ContextSpace(DIM).adapt(given, words)
