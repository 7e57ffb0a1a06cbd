from collections.abc import Sequence

import numpy as np

from keras_drill.data.checks import check_is, check_texts, is_whole


def word_bytes(words: Sequence[str], length: int) -> np.ndarray:
    """Encodes words as bytes, the `descriptions` for a `keras_drill.DescriptionLabelEncoder`.

    Bytes need no list of characters, so they can describe any word, also a word that is added to a
    trained model.

    Args:
        words: List of V words.
        length: Number of bytes to keep of each word, from its beginning.

    Returns:
        `[V, length]` int32 array: the UTF-8 bytes, each plus 1, padded with zeros. All values are
        below 257, the `input_dim` for a `keras.layers.Embedding` of bytes.

    Example:

    >>> from keras_drill.data import word_bytes
    >>> word_bytes(["cat", "Äpfel"], 4)
    array([[100,  98, 117,   0],
           [196, 133, 113, 103]], dtype=int32)
    """
    check_texts("words", words)
    if not is_whole(length) or length < 1:
        raise ValueError(f"`length` must be a positive integer. Received: length={length!r}")
    ids = np.zeros((len(words), length), "int32")
    for row, word in zip(ids, words, strict=True):
        check_is("words", word, str, "strings")
        kept = word.encode("utf-8")[:length]
        row[: len(kept)] = np.frombuffer(kept, "uint8").astype("int32") + 1
    return ids
