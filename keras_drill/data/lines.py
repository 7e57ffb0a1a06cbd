"""Base class of sources of lines."""

import abc
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf

from keras_drill.data.checks import check_is, check_texts, shown


class Lines(abc.ABC):
    """Base class for texts that are read line by line.

    Iteration yields each line as UTF-8 bytes without its line break. A text can be read any number
    of times. Subclasses define `blocks` and `fingerprint`, and may define `origin`. `TextLines`
    reads files.
    """

    @abc.abstractmethod
    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        """Yields lists of `size` lines, UTF-8 bytes without line breaks. The last list may be
        shorter.
        """

    def tensors(self, size: int = 4096) -> Iterator[tf.Tensor]:
        """Yields the lines as string tensors `[size]`. The last tensor may be shorter."""
        for block in self.blocks(size):
            yield tf.constant(block)

    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Returns a hexadecimal digest (hash) of the lines, by which caches recognise a text. Texts
        with different lines must have different digests.
        """

    @property
    def origin(self) -> str:
        """Where the lines come from, for example the paths of files, for error messages. By default
        the `repr` of the object.
        """
        return repr(self)

    def __iter__(self) -> Iterator[bytes]:
        for block in self.blocks():
            yield from block


class ListedLines(Lines):
    """Lines from a list of texts, one line per text.

    A line break at the end of a text is removed.

    Args:
        texts: Strings, or bytes of UTF-8.

    Example:

    >>> list(ListedLines(["one two\\n", b"three"]))
    [b'one two', b'three']
    """

    def __init__(self, texts: Iterable[str | bytes]):
        self.texts: list[bytes] = []
        for text in texts:
            check_is("lines", text, (str, bytes), "texts")
            line = (text.encode() if isinstance(text, str) else text).rstrip(b"\r\n")
            if b"\n" in line:
                raise ValueError(
                    "`lines` must be texts without line breaks: pass each line separately. "
                    f"Received: {shown(text)}"
                )
            self.texts.append(line)

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        for start in range(0, len(self.texts), size):
            yield self.texts[start : start + size]

    def fingerprint(self) -> str:
        return hashlib.sha256(b"\n".join(self.texts)).hexdigest()

    def __repr__(self) -> str:
        return f"{len(self.texts)} lines, beginning {shown(self.texts[:2])}"


def as_lines(lines: Lines | Iterable[str | bytes]) -> Lines:
    """Returns `Lines` unchanged, and converts a list of texts to `Lines`."""
    if isinstance(lines, Lines):
        return lines
    check_texts("lines", lines)
    return ListedLines(lines)


class JoinedLines(Lines):
    """Lines of several texts, one text after the other.

    Args:
        texts: The texts.
    """

    def __init__(self, texts: Sequence[Lines]):
        self.texts = list(texts)

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        lines = itertools.chain.from_iterable(self.texts)
        while block := list(itertools.islice(lines, size)):
            yield block

    @property
    def origin(self) -> str:
        return " and ".join(dict.fromkeys(text.origin for text in self.texts))

    def fingerprint(self) -> str:
        parts = " ".join(text.fingerprint() for text in self.texts)
        return hashlib.sha256(parts.encode()).hexdigest()
