import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.layers import EmbeddingDropout, VariationalDropout
from keras_drill.layers.drop_connect import drop_connect


@pytest.mark.parametrize("rate", [0.5, 0.13, 0.997])
@pytest.mark.parametrize("shape", [(401, 1003), (101, 37, 113)])
def test_drop_connect_is_independent_bernoulli(rate, shape):
    weights = ops.ones(shape)
    dropped = ops.convert_to_numpy(
        drop_connect(weights, rate, keras.random.SeedGenerator(1))
    ).reshape(shape[0], -1)
    scale = dropped.max()
    assert scale == pytest.approx(1 / (1 - rate), rel=1e-2 if rate > 0.9 else 1e-4)
    assert set(np.unique(dropped)) == {0, scale}
    kept = dropped > 0
    deviation = np.sqrt(rate * (1 - rate))
    # Five standard deviations, overall, along either axis, and for neighbours.
    assert abs(kept.mean() - (1 - rate)) < 5 * deviation / np.sqrt(kept.size)
    for axis in (0, 1):
        means = kept.mean(axis=axis)
        assert np.abs(means - (1 - rate)).max() < 5.5 * deviation / np.sqrt(kept.shape[axis])
    centred = kept - (1 - rate)
    for product in (
        centred[:, 1:] * centred[:, :-1],
        centred[:, 2:] * centred[:, :-2],
        centred[1:] * centred[:-1],
    ):
        assert abs(product.mean()) < 5 * deviation**2 / np.sqrt(product.size)


def test_drop_connect_keeps_the_dtype_and_draws_anew():
    seeds = keras.random.SeedGenerator(1)
    weights = ops.ones((7, 11), "bfloat16")
    first, second = (ops.cast(drop_connect(weights, 0.5, seeds), "float32") for _ in range(2))
    assert drop_connect(weights, 0.5, seeds).dtype == weights.dtype
    assert np.any(np.asarray(first) != np.asarray(second))
    assert drop_connect(weights, 0.0, seeds) is weights


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
