"""Serializes many `tf.Example`s fast.

Serializing a single `tf.train.Example` takes several microseconds, and much more with a list of
numbers. A corpus has millions of lines. So this module applies the few encoding rules that examples
need to whole blocks.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

Ids = tuple[np.ndarray, np.ndarray]


def serialize_examples(columns: Mapping[str, Sequence[bytes] | Ids]) -> list[bytes]:
    """Serializes the examples of a block, as `tf.train.Example.SerializeToString` does.

    Args:
        columns: Values of each feature, by name. The values are either one text for each example,
            or two arrays of non-negative integers: the concatenated ids of all examples, and the
            number of ids of each example.

    Returns:
        A list of bytes, one for each example.

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
        _entries(name, _packed(*column), _ids_header)
        if isinstance(column, tuple)
        else _entries(name, column, _text_header)
        for name, column in sorted(columns.items())
    ]
    rows = parts[0] if len(parts) == 1 else map(b"".join, zip(*parts, strict=True))
    return [_WRAPPERS[len(row)] + row for row in rows]


class _BySize(dict):
    """Cache of headers by the size of their content. A header depends only on this size."""

    def __init__(self, make: Callable[[int], bytes]):
        self.make = make

    def __missing__(self, size: int) -> bytes:
        made = self[size] = self.make(size)
        return made


_WRAPPERS = _BySize(lambda size: b"\n" + _varint(size))  # field 1: features


def _entries(name: str, contents: Sequence[bytes], header: Callable[[int], bytes]) -> list[bytes]:
    """Serializes the entries of the map from names to features."""
    headers = _entry_headers(name, header)
    return [headers[len(content)] + content for content in contents]


@functools.cache
def _entry_headers(name: str, header: Callable[[int], bytes]) -> _BySize:
    """Returns the header before the content of a feature with this name."""
    key = _field(1, name.encode())

    def before(size: int) -> bytes:
        feature = header(size)
        value = b"\x12" + _varint(len(feature) + size) + feature
        return b"\n" + _varint(len(key) + len(value) + size) + key + value

    return _BySize(before)


def _text_header(size: int) -> bytes:
    """Returns the header before a text: field 1 of a feature, a list with the text in field 1."""
    text = b"\n" + _varint(size)
    return b"\n" + _varint(len(text) + size) + text


def _ids_header(size: int) -> bytes:
    """Returns the header before numbers: field 3 of a feature, a list with numbers in field 1."""
    packed = b"\n" + _varint(size) if size else b""
    return b"\x1a" + _varint(len(packed) + size) + packed


def _packed(ids: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    """Encodes the numbers of each example in base 128."""
    encoded, sizes = _varints(ids)
    byte_ends = np.concatenate([[0], np.cumsum(sizes)])
    ends = byte_ends[np.concatenate([[0], np.cumsum(lengths)])].tolist()
    return [encoded[start:end] for start, end in itertools.pairwise(ends)]


def _varints(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Encodes numbers in base 128, lowest digit first. Also returns the number of bytes of each."""
    largest = int(values.max(initial=0))
    values = np.asarray(values, np.uint32 if largest < 1 << 32 else np.uint64)
    width = max(-(-largest.bit_length() // 7), 1)
    digits = np.empty((len(values), width), np.uint8)
    is_digit = np.ones((len(values), width), bool)
    sizes = np.ones(len(values), np.int64)
    for place in range(width):
        more = values > 127
        digits[:, place] = (values & 127).astype(np.uint8) | more.view(np.uint8) << 7
        if place + 1 < width:
            is_digit[:, place + 1] = more
            sizes += more
        values = values >> 7
    return digits[is_digit].tobytes(), sizes


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    digits = []
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])
