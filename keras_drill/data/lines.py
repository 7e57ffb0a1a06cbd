"""What every source of lines offers."""

import abc
import hashlib
import itertools
from collections.abc import Iterator, Sequence

import tensorflow as tf


class Lines(abc.ABC):
    """Lines of text, UTF-8 and without their ends, that can be read any number of times."""

    @abc.abstractmethod
    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        """Gives the lines in lists of `size` lines, the last one shorter."""

    def tensors(self, size: int = 4096) -> Iterator[tf.Tensor]:
        """The same lists as string tensors `[N]`."""
        for block in self.blocks(size):
            yield tf.constant(block)

    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Hexadecimal digest that changes with the lines."""

    @property
    def origin(self) -> str:
        """Where the lines come from, in words for people: the paths of files, for example."""
        return repr(self)

    def __iter__(self) -> Iterator[bytes]:
        for block in self.blocks():
            yield from block


class JoinedLines(Lines):
    """Several texts, one after the other.

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
