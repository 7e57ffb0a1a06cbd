"""Computes the items of an iterable in advance, in a thread."""

import collections
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetch(items: Iterable[T], ahead: int = 2) -> Iterator[T]:
    """Yields the items of an iterable, and computes the next items in another thread.

    Prefetching is faster if the operations that compute the items release Python's global
    interpreter lock, as those of TensorFlow do.

    Args:
        items: The items. The thread computes them one after the other.
        ahead: Number of items to compute in advance.

    Example:

    >>> list(prefetch(number**2 for number in range(5)))
    [0, 1, 4, 9, 16]
    """
    source = iter(items)
    with ThreadPoolExecutor(1, "prefetch") as maker:
        made = collections.deque(
            maker.submit(lambda: list(itertools.islice(source, 1))) for _ in range(ahead)
        )
        while item := made.popleft().result():
            made.append(maker.submit(lambda: list(itertools.islice(source, 1))))
            yield item[0]
