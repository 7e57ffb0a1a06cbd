"""Random masks on weights."""

import math

import keras
from keras import ops


def drop_connect(weights, rate: float, seed_generator):
    """Zeroes each weight with probability `rate` and scales the others to keep the expectation.

        weights'_ij = weights_ij b_ij / q,    b_ij ~ Bernoulli(q),    q = 1 − rate

    A recurrent matrix has millions of entries, so random bits cost as much as a matrix product:
    every 32-bit draw serves two weights. `q` is therefore a multiple of 2⁻¹⁶; the scale uses that
    `q`, so the expectation is exact.

    Args:
        weights: float tensor `[..., n]` of static shape.
        rate: float in `[0, 1)`, the probability of dropping a weight.
        seed_generator: a `keras.random.SeedGenerator`; it advances by one draw.

    Returns:
        A tensor like `weights`.

    References:
        - [Wan et al., 2013](https://proceedings.mlr.press/v28/wan13.html)
        - [Merity et al., 2018](https://arxiv.org/abs/1708.02182), section 2 (weight-dropped LSTM)
    """
    threshold = round(rate * 2**16)
    if threshold == 0:
        return weights
    keep_probability = 1 - threshold / 2**16
    size = math.prod(weights.shape)
    draws = keras.random.randint(
        (-(-size // 2),), -(2**31), 2**31 - 1, dtype="int32", seed=seed_generator
    )
    bits = ops.reshape(ops.view(draws, "int16")[:size], weights.shape)
    kept = bits >= threshold - 2**15
    return ops.where(kept, weights, ops.zeros((), weights.dtype)) / keep_probability
