import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.ops.fast_dropout import fast_dropout


@pytest.mark.parametrize("rate", [0.5, 0.13, 0.997])
@pytest.mark.parametrize("shape", [(401, 1003), (101, 37, 113)])
def test_fast_dropout_is_independent_bernoulli(rate, shape):
    weights = ops.ones(shape)
    dropped = ops.convert_to_numpy(
        fast_dropout(weights, rate, keras.random.SeedGenerator(1))
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


def test_fast_dropout_keeps_the_dtype_and_draws_anew():
    seeds = keras.random.SeedGenerator(1)
    weights = ops.ones((7, 11), "bfloat16")
    first, second = (ops.cast(fast_dropout(weights, 0.5, seeds), "float32") for _ in range(2))
    assert fast_dropout(weights, 0.5, seeds).dtype == weights.dtype
    assert np.any(np.asarray(first) != np.asarray(second))
    assert fast_dropout(weights, 0.0, seeds) is weights
