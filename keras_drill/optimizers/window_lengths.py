"""Draws new random lengths of text windows for each epoch, as for AWD-LSTM.

`keras_drill.data.ContiguousBatches` cuts texts into these windows. This module needs no TensorFlow,
so programs on other backends can use the same lengths.
"""

import numpy as np

_MIN_LENGTH, _JITTER = 5, 5


def count_windows(steps: int, sequence_length: int) -> int:
    """Returns the number of windows per epoch.

    Args:
        steps: Number of tokens of a row of the text.
        sequence_length: The usual length of a window.
    """
    mean = 0.95 * sequence_length + 0.05 * (sequence_length // 2)
    return max(round(steps / max(mean, _MIN_LENGTH)), 1)


def draw_window_lengths(steps: int, sequence_length: int, seed: int, epoch: int) -> np.ndarray:
    """Draws the lengths of an epoch's windows, whose sum is `steps`.

    A length is normally distributed with a standard deviation of 5, and is at least 5. The mean is
    `sequence_length` with probability 0.95, else half of it. The lengths are then changed by as
    little as possible, so that their sum is `steps`.

    Args:
        steps: Number of tokens of a row of the text.
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
