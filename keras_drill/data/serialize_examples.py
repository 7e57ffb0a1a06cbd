"""Serialized `tf.Example`s, many at once.

One `tf.train.Example` after another costs several microseconds each, and much more where it holds a
list of numbers; a corpus has millions of lines. The few rules of the encoding that examples need
are applied here to whole blocks.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

Ids = tuple[np.ndarray, np.ndarray]


def serialize_examples(columns: Mapping[str, Sequence[bytes] | Ids]) -> list[bytes]:
    """The examples of a block, as `tf.train.Example.SerializeToString` would write them.

    Args:
        columns: By the name of the feature: one text for each example, or the ids of all examples
            one after the other and the number of each example's, two arrays of whole numbers that
            are not negative.

    Example:

    >>> ids = np.array([2, 300, 1]), np.array([2, 1])
    >>> import tensorflow as tf
    >>> serialized = serialize_examples({"text": [b"the cat", b""], "ids": ids})
    >>> example = tf.train.Example.FromString(serialized[0])
    >>> example.features.feature["text"].bytes_list.value, list(
    ...     example.features.feature["ids"].int64_list.value
    ... )
    ([b'the cat'], [2, 300])

    References:
        - [Protocol Buffers, encoding](https://protobuf.dev/programming-guides/encoding)
    """
    parts = [
        _entries(name, _id_lists(*column) if isinstance(column, tuple) else _texts(column))
        for name, column in sorted(columns.items())
    ]
    rows = parts[0] if len(parts) == 1 else map(b"".join, zip(*parts, strict=True))
    return [b"\n" + _varint(len(row)) + row for row in rows]  # field 1: features


def _entries(name: str, features: list[bytes]) -> list[bytes]:
    """Entries of the map from names to features."""
    key = _field(1, name.encode())
    rows = []
    for feature in features:
        size = _varint(len(feature))
        body_size = len(key) + 1 + len(size) + len(feature)
        rows.append(b"".join((b"\n", _varint(body_size), key, b"\x12", size, feature)))
    return rows


def _texts(texts: Sequence[bytes]) -> list[bytes]:
    """Features that hold a list of one text: field 1, a list whose field 1 is the text."""
    features = []
    for text in texts:
        size = _varint(len(text))
        features.append(b"".join((b"\n", _varint(1 + len(size) + len(text)), b"\n", size, text)))
    return features


def _id_lists(ids: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    """Features that hold a list of numbers: field 3, a list whose field 1 is all of them."""
    encoded, sizes = _varints(ids)
    byte_ends = np.concatenate([[0], np.cumsum(sizes)])
    ends = byte_ends[np.concatenate([[0], np.cumsum(lengths)])].tolist()
    features = []
    for start, end in itertools.pairwise(ends):
        packed = _field(1, encoded[start:end]) if end > start else b""
        features.append(_field(3, packed))
    return features


def _varints(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Numbers in base 128, the lowest digit first, and how many bytes each of them takes."""
    values = np.asarray(values, np.int64)
    sizes = np.ones(len(values), np.int64)
    limit = 128
    while len(values) and limit <= values.max():
        sizes += values >= limit
        limit *= 128
    if not len(values) or sizes.max() == 1:
        return values.astype(np.uint8).tobytes(), sizes
    places = np.arange(sizes.max())
    digits = (values[:, None] >> (7 * places)) & 127
    digits |= 128 * (places < sizes[:, None] - 1)  # all but the last say that more follow
    return digits.astype(np.uint8)[places < sizes[:, None]].tobytes(), sizes


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    if value < 128:
        return _SMALL[value]
    digits = []
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


_SMALL = [bytes([value]) for value in range(128)]
