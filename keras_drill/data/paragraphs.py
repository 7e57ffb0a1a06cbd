"""Joins wrapped lines to paragraphs, and detects texts with wrapped lines."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from keras_drill.data.lines import Lines

_FEWEST = 20
_WHITE_SPACE = r"[ \t\r\v\f]*"
_NARROWEST, _WIDEST = 40, 100  # characters
_ENDS = tuple(".!?:;\"'”’»…)]}。！？")


class Paragraphs(Lines):
    """Paragraphs of a text, each as one line.

    Blank lines separate paragraphs. The lines of a paragraph are joined by spaces. Use this class
    for texts whose lines are wrapped at a width.

    Args:
        lines: The lines of the text, a `keras_drill.data.Lines`.

    Example:

    >>> from keras_drill.data import Paragraphs, TextLines
    >>> path = getfixture("tmp_path") / "a.txt"
    >>> _ = path.write_text("The cat\\nsat.\\n\\n\\nThe dog\\n")
    >>> list(Paragraphs(TextLines(path)))
    [b'The cat sat.', b'The dog']
    """

    def __init__(self, lines: Lines):
        self.lines = lines

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        groups = itertools.groupby(self.lines, key=lambda line: bool(line.strip()))
        joined = (b" ".join(map(bytes.strip, group)) for is_text, group in groups if is_text)
        while block := list(itertools.islice(joined, size)):
            yield block

    @property
    def origin(self) -> str:
        return self.lines.origin

    def fingerprint(self) -> str:
        return hashlib.sha256(f"paragraphs {self.lines.fingerprint()}".encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Paragraphs({self.lines!r})"


def join_wrapped_lines(texts: tf.Tensor) -> tf.Tensor:
    """Joins the wrapped lines of texts, so that each paragraph is one line, as in `Paragraphs`.

    The function runs in graphs. If a text ends in an empty line, its result ends in a line break.

    Args:
        texts: Strings of any shape.

    Example:

    >>> join_wrapped_lines(tf.constant(["The cat\\nsat.\\n\\n\\nThe dog\\n"])).numpy().tolist()
    [b'The cat sat.\\nThe dog']
    """
    steps = [(rf"{_WHITE_SPACE}\n{_WHITE_SPACE}", "\n"), (r"\A\n+", ""), (r"([^\n])\n\z", r"\1")]
    # Twice, since a match includes both characters around a line break, and lines may have only
    # one.
    steps += [(r"([^\n])\n([^\n])", r"\1 \2")] * 2 + [(r"\n+", "\n")]
    for pattern, replacement in steps:
        texts = tf.strings.regex_replace(texts, pattern, replacement)
    return texts


def is_wrapped(lines: Iterable[bytes]) -> bool:
    """Returns whether lines are wrapped at a width, and not one sentence or paragraph per line.

    Args:
        lines: The text or its beginning, in UTF-8.

    Example:

    >>> words = b"it was the best of times and it was the worst of times , so they say".split()
    >>> is_wrapped([b" ".join(words[n % 3 :]) for n in range(30)])
    True
    >>> is_wrapped([b" ".join(words[n % 14 :]) + b"." for n in range(30)])
    False
    """
    texts = [line.decode("utf-8", errors="replace").strip() for line in lines]
    texts = [text for text in texts if text]
    if len(texts) < _FEWEST:
        return False
    width = np.percentile([len(text) for text in texts], 95)
    full = [text for text in texts if len(text) > 0.8 * width]
    within = sum(not text.endswith(_ENDS) for text in full)
    is_narrow = _NARROWEST <= width <= _WIDEST
    return bool(is_narrow and len(full) > len(texts) / 2 and within > 0.7 * len(full))
