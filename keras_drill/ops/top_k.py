"""The largest entries of long rows."""

import math

import numpy as np
from keras import ops

from keras_drill.types import Tensor

_FEW = 1024  # shorter rows are not split into blocks


def top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Returns the `k` largest entries of each row and their indices, faster than Keras' `top_k`.

    The function splits a row into blocks. The `k` largest entries lie in the `k` blocks with the
    largest maxima, so only these blocks are searched. Vector instructions compute the maxima,
    while TensorFlow's own operation compares entry by entry.

    Among equal entries, those with the lowest indices come first, on every backend and with every
    compiler. Blocks with equal maxima are chosen and searched in their order. -0 equals 0.

    Args:
        x: `[..., n]`, floats, with static n; no entry is NaN.
        k: Number of entries, at most n.

    Returns:
        `(values, indices)`, each `[..., k]`, the largest first.
    """
    n = x.shape[-1]
    if n < _FEW or k > n // 16:
        return _stable_top_k(x, k)
    shape = ops.shape(x)[:-1]
    size = _block_size(n, k)
    x = ops.reshape(x, (-1, n))
    if n % size:
        x = ops.pad(x, [(0, 0), (0, -n % size)], constant_values=-np.inf)
    num_blocks = -(-n // size)
    blocks = ops.reshape(x, (-1, size))  # [N * num_blocks, size]
    maxima = ops.reshape(ops.max(blocks, axis=-1), (-1, num_blocks))
    chosen = ops.sort(ops.cast(_stable_top_k(maxima, k)[1], "int32"), axis=-1)  # [N, k]
    first = num_blocks * ops.arange(ops.shape(maxima)[0], dtype="int32")[:, None]
    entries = ops.reshape(ops.take(blocks, chosen + first, axis=0), (-1, k * size))
    values, places = _stable_top_k(entries, k)
    places = ops.cast(places, "int32")
    indices = ops.take_along_axis(chosen, places // size, axis=1) * size + places % size
    return ops.reshape(values, (*shape, k)), ops.reshape(indices, (*shape, k))


def _stable_top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Applies `ops.top_k` with -0 replaced by 0, because XLA sorts -0 below 0."""
    return ops.top_k(ops.where(ops.equal(x, 0), ops.zeros_like(x), x), k)


def _block_size(n: int, k: int) -> int:
    """Returns the number of entries of a block, preferably a divisor of `n`.

    With this size there are about as many blocks as entries in the `k` chosen blocks.
    """
    best = math.isqrt(n // k)
    divisors = [size for size in range(best // 2 + 1, 2 * best) if n % size == 0]
    return min(divisors, key=lambda size: abs(size - best), default=best)
