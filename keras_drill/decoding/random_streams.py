"""Random numbers that depend only on a key and a position, and sampling of words with them."""

import keras
import numpy as np
from keras import ops

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def counter_uniform(keys, length):
    """Computes random numbers, uniform in [0, 1), as a pure function of key and position.

    The number in row b at position t is a hash of `(keys[b], t)`. The number does not depend on
    backend, device and batch size, so that sampling gives the same sequence alone, in a batch and
    on a server. The hash is Threefry-2x32 with 20 rounds, of which the upper 24 bits of the
    first word are used.

    Args:
        keys: uint32 tensor `[B, 2]`.
        length: Number of positions per row.

    Returns:
        Float32 tensor `[B, length]`.

    Example:

    >>> import keras
    >>> keys = keras.ops.convert_to_tensor([[7, 0], [7, 1]], dtype="uint32")
    >>> tuple(counter_uniform(keys, 3).shape)
    (2, 3)

    References:
        - Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
    """
    positions = ops.cast(ops.arange(length, dtype="int32"), "uint32")[None, :]  # [1, length]
    bits, _ = threefry(keys[:, :1], keys[:, 1:], positions, ops.zeros_like(positions))
    bits = ops.right_shift(bits, np.uint32(8))  # [B, length]
    return ops.cast(ops.cast(bits, "int32"), "float32") * 2.0**-24


def row_keys(seed, batch_size):
    """Returns uint32 keys `[B, 2]` of the random streams of rows; see `Sampler.begin`."""
    if seed is None:
        seed = keras.random.randint((), 0, 2**31 - 1)
    if isinstance(seed, (int, np.integer)) and not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be from 0 to 2**32 - 1. Received: seed={seed}")
    rows = ops.cast(ops.arange(batch_size, dtype="int32"), "uint32")
    if isinstance(seed, (int, np.integer)):
        seed = ops.convert_to_tensor(np.uint32(seed))
    seed = ops.cast(seed, "uint32")
    if len(seed.shape) == 0:
        return ops.stack([ops.broadcast_to(seed, (batch_size,)), rows], axis=-1)
    if len(seed.shape) == 1:
        return ops.stack([seed, ops.zeros_like(seed)], axis=-1)
    return seed


def sample_keys(keys, num_samples):
    """Returns keys of independent random streams for several samples of each row.

    The first sample uses the row's own stream. The samples do not depend on `num_samples`.

    Args:
        keys: uint32 tensor `[B, 2]`, from `row_keys`.
        num_samples: Number n of samples of each row, an integer or a scalar tensor.

    Returns:
        uint32 tensor `[B · n, 2]`. The samples of a row are adjacent.

    Example:

    >>> keys = sample_keys(row_keys(seed=7, batch_size=2), 3)
    >>> tuple(keys.shape), keras.ops.convert_to_numpy(keys[3]).tolist()
    ((6, 2), [7, 1])
    """
    samples = ops.cast(ops.arange(num_samples, dtype="int32"), "uint32")[None, :]  # [1, n]
    # Counters with a second word of 1: `counter_uniform` uses those with 0.
    hashed = threefry(keys[:, :1], keys[:, 1:], samples, ops.ones_like(samples))
    chosen = [
        ops.where(samples == 0, own, other)  # [B, n]
        for own, other in zip((keys[:, :1], keys[:, 1:]), hashed, strict=True)
    ]
    return ops.reshape(ops.stack(chosen, axis=-1), (-1, 2))


def threefry(key0, key1, counter0, counter1):
    """Computes the hash Threefry-2x32-20 of uint32 tensors, with broadcasting."""
    keys = (key0, key1, ops.bitwise_xor(ops.bitwise_xor(key0, key1), _PARITY))
    # Operators: `ops.add` takes a `[0, n]` tensor for a bias and fails on empty batches.
    x0, x1 = counter0 + key0, counter1 + key1
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ops.bitwise_xor(x0, _rotate_left(x1, rotation))
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def _rotate_left(x, bits):
    return ops.bitwise_or(
        ops.left_shift(x, np.uint32(bits)), ops.right_shift(x, np.uint32(32 - bits))
    )


def draw(probabilities, uniforms):
    """Draws one index per row by inverting the cumulative distribution.

    An index whose probability is 0 is never drawn, whatever the rounding of the sums.

    Args:
        probabilities: Float tensor `[B, n]`, non-negative, not necessarily summing to 1.
        uniforms: Float tensor `[B]` in [0, 1).

    Returns:
        Integer tensor `[B]`.

    Example:

    >>> import keras
    >>> index = draw(keras.ops.array([[0.25, 0.0, 0.75]]), keras.ops.array([0.25]))
    >>> int(index[0])
    2
    """
    cumulative = ops.cumsum(probabilities, axis=-1)  # [B, n]
    # Parallel prefix sums are not monotone to the last bit: impossible indices are masked.
    cumulative = ops.where(probabilities > 0, cumulative, 0.0)
    threshold = uniforms[:, None] * ops.max(cumulative, axis=-1, keepdims=True)  # [B, 1]
    return ops.argmax(ops.cast(cumulative > threshold, "int32"), axis=-1)
