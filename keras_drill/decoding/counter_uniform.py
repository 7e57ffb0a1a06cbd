"""Random numbers that depend on a key and a position only."""

import numpy as np
from keras import ops

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def counter_uniform(keys, length):
    """Uniform numbers in [0, 1) as a pure function of key and position.

    Row b, position t is the hash of `(keys[b], t)`: the same on every backend, device and batch
    size, so that a sequence is drawn alike alone, in a batch and on a server. The hash is
    Threefry-2x32 with 20 rounds; the 24 upper bits of its first word are used.

    Args:
        keys: uint32 tensor `[B, 2]`.
        length: Positions per row.

    Returns:
        Float32 tensor `[B, length]`.

    Example:

    >>> import keras
    >>> keys = keras.ops.convert_to_tensor([[7, 0], [7, 1]], dtype="uint32")
    >>> counter_uniform(keys, 3).shape
    TensorShape([2, 3])

    References:
        - Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
    """
    positions = ops.cast(ops.arange(length, dtype="int32"), "uint32")[None, :]  # [1, length]
    bits, _ = threefry(keys[:, :1], keys[:, 1:], positions, ops.zeros_like(positions))
    bits = ops.right_shift(bits, np.uint32(8))  # [B, length]
    return ops.cast(ops.cast(bits, "int32"), "float32") * 2.0**-24


def threefry(key0, key1, counter0, counter1):
    """Threefry-2x32-20 of uint32 tensors that broadcast against each other."""
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
