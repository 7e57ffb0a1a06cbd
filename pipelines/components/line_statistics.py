"""Computes statistics of the lines of one column, block by block in bounded memory."""

import collections
import heapq
import unicodedata
from typing import Any

import numpy as np
import tensorflow as tf

from keras_drill.data import Tokenizer

# Longer lines share the last bin of the histogram from which quantiles are computed.
_LONGEST = 1 << 16
# With more distinct tokens the rarest are dropped; with more lines only a sample is kept.
_MOST_TOKENS = 1 << 20
_MOST_LINES = 1 << 18
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_FREQUENT = 1000
# Words of Unicode names: variants of a letter, and words that mark a character as a letter.
_MANNERS = {"FULLWIDTH", "HALFWIDTH"}
_LETTERS = {"LETTER", "SYLLABLE", "IDEOGRAPH", "LIGATURE"}


class LineStatistics:
    """Statistics of the lines of a column.

    Args:
        tokenizer: Tokenizes the lines.
    """

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.tokens = TokenCounts()
        self.lines = LineSample()
        self._lengths = np.zeros(_LONGEST + 1, np.int64)
        self._characters = np.zeros(0x110000, np.int32)
        self._num_lines = self._num_empty = self._num_bytes = self._num_tokens = self._longest = 0

    def add(self, block: tf.Tensor) -> None:
        """Adds lines, a string tensor `[N]`, to the statistics."""
        words = self.tokenizer.tokenize(block)
        lengths = words.row_lengths().numpy()
        self._num_lines += len(lengths)
        self._num_empty += int(np.count_nonzero(lengths == 0))
        self._num_tokens += int(lengths.sum())
        self._longest = max(self._longest, int(lengths.max(initial=0)))
        self._lengths += np.bincount(np.minimum(lengths, _LONGEST), minlength=_LONGEST + 1)
        self.tokens.add(words.flat_values)
        self.lines.add(tf.boolean_mask(block, lengths > 0))
        self._add_characters(b"".join(block.numpy().tolist()))

    def to_mapping(self, train: "LineStatistics | None" = None) -> dict[str, Any]:
        """Returns the statistics as a JSON-serializable mapping.

        Args:
            train: The statistics of the training lines; `None` if these are `self`.
        """
        lines, tokens = max(self._num_lines, 1), max(self._num_tokens, 1)
        frequent = self.tokens.most_common(_FREQUENT)
        told: dict[str, Any] = {
            "lines": self._num_lines,
            "empty_share": round(self._num_empty / lines, 6),
            "bytes": self._num_bytes,
            "tokens": self._num_tokens,
            "distinct_tokens": len(self.tokens.counts),
            "mean_length": round(self._num_tokens / lines, 3),
            "max_length": self._longest,
            "length_quantiles": self._quantiles(),
            "length_histogram": self._histogram(),
            "duplicate_share": round(self.lines.duplicate_share, 6),
            "scripts": _scripts(self._characters),
            "control_characters": _control_characters(self._characters),
            "frequent_tokens": [
                [token.decode("utf-8", "replace"), round(count / tokens, 9)]
                for token, count in frequent
            ],
        }
        if train is not None:
            told["unseen_share"] = round(self.tokens.share_missing_in(train.tokens), 6)
            told["in_train_share"] = round(self.lines.share_in(train.lines), 6)
        return told

    def _quantiles(self) -> dict[str, int]:
        ends = np.cumsum(self._lengths)
        places = np.searchsorted(ends, np.array(_QUANTILES) * ends[-1])
        return {f"{q:.0%}": int(place) for q, place in zip(_QUANTILES, places, strict=True)}

    def _histogram(self) -> list[list[int]]:
        """Returns bins of doubling width as `[first length, last length, number of lines]`."""
        bins, first, last = [], 0, 0
        while first <= min(self._longest, _LONGEST):
            bins.append([first, last, int(self._lengths[first : last + 1].sum())])
            first, last = last + 1, max(2 * last, 1)
        return bins

    def _add_characters(self, text: bytes) -> None:
        self._num_bytes += len(text)
        if text.isascii():
            counts = np.bincount(np.frombuffer(text, np.uint8), minlength=128)
        else:
            points = text.decode("utf-8", "replace").encode("utf-32-le")
            counts = np.bincount(np.frombuffer(points, np.uint32))
        self._characters[: len(counts)] += counts.astype(np.int32)


class TokenCounts:
    """Counts tokens. If there are too many distinct tokens, drops the rarest ones."""

    def __init__(self):
        self.counts: collections.Counter[bytes] = collections.Counter()
        self._dropped_up_to = 0

    def add(self, tokens: tf.Tensor) -> None:
        unique, _, counts = tf.unique_with_counts(tokens)
        pairs = zip(unique.numpy().tolist(), counts.numpy().tolist(), strict=True)
        for token, count in pairs:
            self.counts[token] += count
        while len(self.counts) > _MOST_TOKENS:
            self._dropped_up_to += 1
            rare = [token for token, count in self.counts.items() if count <= self._dropped_up_to]
            for token in rare:
                del self.counts[token]

    def most_common(self, number: int) -> list[tuple[bytes, int]]:
        """Returns the most frequent tokens with their counts. Ties are in alphabetical order."""
        return heapq.nsmallest(number, self.counts.items(), key=lambda item: (-item[1], item[0]))

    def share_missing_in(self, others: "TokenCounts") -> float:
        """Returns the share of the counted tokens that `others` does not contain."""
        missing = sum(count for token, count in self.counts.items() if token not in others.counts)
        return missing / max(self.counts.total(), 1)


class LineSample:
    """The distinct lines, or a sample of them if there are too many.

    The sample consists of the lines whose hash ends with a certain number of zero bits. When the
    sample is too large, this number increases by one, which drops about half of the lines. The
    sample stays random (adaptive sampling, Flajolet, 1990).
    """

    def __init__(self):
        self.digests: set[int] = set()
        self.mask = 0
        self.number = 0

    def add(self, lines: tf.Tensor) -> None:
        digests = tf.strings.to_hash_bucket_fast(lines, 1 << 62).numpy()
        self.number += len(digests)
        self.digests.update(digests[digests & self.mask == 0].tolist())
        while len(self.digests) > _MOST_LINES:
            self.mask = self.mask << 1 | 1
            self.digests = {digest for digest in self.digests if not digest & self.mask}

    @property
    def duplicate_share(self) -> float:
        """The share of the lines that repeat an earlier line, estimated from the sample."""
        distinct = len(self.digests) * (self.mask + 1)
        return max(0.0, 1 - distinct / self.number) if self.number else 0.0

    def share_in(self, others: "LineSample") -> float:
        """Returns the share of the distinct lines that `others` also contains."""
        mask = self.mask | others.mask
        mine = {digest for digest in self.digests if not digest & mask}
        return len(mine & others.digests) / max(len(mine), 1)


def _scripts(characters: np.ndarray) -> dict[str, float]:
    """Returns the share of each script among the letters."""
    counts: collections.Counter[str] = collections.Counter()
    for point in np.flatnonzero(characters).tolist():
        script = _script(chr(point))
        if script is not None:
            counts[script] += int(characters[point])
    total = max(counts.total(), 1)
    return {name: round(count / total, 6) for name, count in counts.most_common()}


def _script(letter: str) -> str | None:
    """Returns the script of a letter by its Unicode name, or `None`.

    >>> [_script(letter) for letter in "aéжقあ漢한ａ1ʼ"]
    ['Latin', 'Latin', 'Cyrillic', 'Arabic', 'Hiragana', 'Han', 'Hangul', 'Latin', None, None]
    """
    name = unicodedata.name(letter, "").replace("-", " ")
    words = [word for word in name.split() if word not in _MANNERS]
    if not _LETTERS.intersection(words[1:]) or words[0] == "MODIFIER":
        return None
    return "Han" if words[0] == "CJK" else words[0].capitalize()


def _control_characters(characters: np.ndarray) -> int:
    """Counts control characters except tabs, and replacement characters (U+FFFD)."""
    points = [*range(9), *range(10, 32), *range(127, 160), 0xFFFD]
    return int(characters[points].sum())
