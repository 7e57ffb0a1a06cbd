"""Which words have how many senses."""

import numpy as np


def words_by_senses(sense_to_word: np.ndarray, vocabulary_size: int) -> dict[int, np.ndarray]:
    """Words by their number of senses, the table of the KerBS paper (Table 6).

    Args:
        sense_to_word: The word of every sense, `[M]`.
        vocabulary_size: Number of words V.

    Returns:
        Number of senses, in rising order, to the ids of the words that have so many, in rising
        order.

    Example:

    >>> words_by_senses(np.array([0, 1, 2, 2, 0, 2]), 3)
    {1: array([1]), 2: array([0]), 3: array([2])}

    References:
        - [Miao et al., 2019](https://arxiv.org/abs/1911.00274), Table 6
    """
    sense_to_word = np.asarray(sense_to_word)
    if sense_to_word.size and not 0 <= sense_to_word.min() <= sense_to_word.max() < vocabulary_size:
        raise ValueError(
            f"`sense_to_word` must hold words in [0, {vocabulary_size}). "
            f"Received: {sense_to_word.min()} to {sense_to_word.max()}"
        )
    numbers = np.bincount(sense_to_word, minlength=vocabulary_size)
    return {int(number): np.flatnonzero(numbers == number) for number in np.unique(numbers)}
