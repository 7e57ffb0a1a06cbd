"""Dropout of tensors with millions of entries."""

import math

import keras
from keras import ops


def fast_dropout(x, rate: float, seed_generator):
    """Zeroes each entry with probability `rate` and scales the others to keep the expectation.

        y_i = x_i b_i / q,    b_i ~ Bernoulli(q) independently,    q = 1 − rate

    `keras.random.dropout` draws 32 random bits per entry. For a recurrent matrix or the embeddings
    of a vocabulary, this costs about as much as a matrix product. This function uses 16 bits per
    entry, and therefore rounds `q` to a multiple of 2⁻¹⁶. It scales by the rounded `q`, so the
    expectation is exact.

    Args:
        x: float tensor.
        rate: float in `[0, 1)`, the probability of dropping an entry.
        seed_generator: a `keras.random.SeedGenerator`, which advances by one draw.

    Returns:
        A tensor like `x`.
    """
    threshold = round(rate * 2**16)
    if threshold == 0:
        return x
    shape = ops.shape(x)
    size = math.prod(shape)
    draws = keras.random.randint(
        ((size + 1) // 2,), -(2**31), 2**31 - 1, dtype="int32", seed=seed_generator
    )
    bits = ops.reshape(ops.view(draws, "int16")[:size], shape)
    kept = bits >= threshold - 2**15
    return ops.where(kept, x, ops.zeros((), x.dtype)) / (1 - threshold / 2**16)
