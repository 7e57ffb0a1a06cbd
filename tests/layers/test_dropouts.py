import numpy as np
import pytest
from keras import ops

from keras_drill.layers import EmbeddingDropout, VariationalDropout


@pytest.mark.parametrize("time_major", [False, True])
def test_variational_mask_is_shared_by_time_steps(time_major):
    shape = (7, 3, 101) if time_major else (3, 7, 101)
    layer = VariationalDropout(0.3, time_major=time_major, seed=1)
    y = ops.convert_to_numpy(layer(ops.ones(shape), training=True))
    y = y if time_major else y.swapaxes(0, 1)
    np.testing.assert_array_equal(y, np.broadcast_to(y[:1], y.shape))
    assert (y[0, 0] != y[0, 1]).any()
    assert np.unique(y) == pytest.approx([0, 1 / 0.7])
    np.testing.assert_array_equal(layer(ops.ones(shape)), np.ones(shape))


def test_embedding_dropout_drops_words():
    tokens = np.random.RandomState(0).randint(0, 31, (5, 41))
    layer = EmbeddingDropout(0.4, vocabulary_size=31, seed=1)
    y = ops.convert_to_numpy(layer(ops.ones((5, 41, 3)), tokens, training=True))
    assert np.unique(y) == pytest.approx([0, 1 / 0.6])
    for word in range(31):
        assert len(np.unique(y[tokens == word])) == 1
    np.testing.assert_array_equal(layer(ops.ones((5, 41, 3)), tokens), np.ones((5, 41, 3)))


@pytest.mark.parametrize(
    "layer", [VariationalDropout(0.3, True, 5), EmbeddingDropout(0.3, vocabulary_size=7, seed=5)]
)
def test_config(layer):
    assert type(layer).from_config(layer.get_config()).get_config() == layer.get_config()


def test_bad_rates():
    with pytest.raises(ValueError, match=r"`rate` must be in .* Received: rate=1"):
        VariationalDropout(1)
    with pytest.raises(ValueError, match=r"`rate` must be in .* Received: rate=-1"):
        EmbeddingDropout(-1, vocabulary_size=3)
