"""Lengths of the windows that AWD-LSTM reads, drawn anew for each epoch.

This module needs no TensorFlow, so programs on other backends draw the lengths of
`keras_drill.data.ContiguousBatches`.
"""

import numpy as np

_MIN_LENGTH, _JITTER = 5, 5


def count_windows(steps: int, sequence_length: int) -> int:
    """Returns the number of windows of every epoch.

    Args:
        steps: Length of a row of the text.
        sequence_length: The usual length of a window.
    """
    mean = 0.95 * sequence_length + 0.05 * (sequence_length // 2)
    return max(round(steps / max(mean, _MIN_LENGTH)), 1)


def draw_window_lengths(steps: int, sequence_length: int, seed: int, epoch: int) -> np.ndarray:
    """Draws the lengths of an epoch's windows, which add up to `steps`.

    With probability 0.95 a length is around `sequence_length`, else around half of it, with a
    normal jitter of 5 and at least 5. The lengths are then changed by as little as possible, so
    that they fill the text.

    Args:
        steps: Length of a row of the text.
        sequence_length: The usual length of a window.
        seed: An integer.
        epoch: Number of the epoch, from 0.

    Returns:
        Integers `[count_windows(steps, sequence_length)]`.
    """
    count = count_windows(steps, sequence_length)
    # RandomState gives the same numbers in every version of NumPy.
    random = np.random.RandomState([seed, epoch])
    is_full = random.random_sample(count) < 0.95
    base = np.where(is_full, sequence_length, sequence_length // 2)
    lengths = (base + _JITTER * random.standard_normal(count)).astype(int)
    return _fill(np.maximum(lengths, _MIN_LENGTH), steps, random.permutation(count))


def _fill(lengths: np.ndarray, steps: int, order: np.ndarray) -> np.ndarray:
    """Changes lengths by as little as possible, in the given order, so that they sum to `steps`."""
    while (missing := steps - lengths.sum()) != 0:
        able = order
        if missing < 0:
            able = order[lengths[order] > min(_MIN_LENGTH, lengths.max() - 1)]
        lengths[able[: abs(missing)]] += np.sign(missing)
    return lengths
