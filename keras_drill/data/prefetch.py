"""Making the next items while others are used."""

import collections
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetch(items: Iterable[T], ahead: int = 2) -> Iterator[T]:
    """Gives the same items in the same order, made in another thread while others are used.

    It pays where making them is left to operations that let other threads run, as TensorFlow's do.

    Args:
        items: Are made in that thread, one after the other.
        ahead: How many are made before they are asked for.

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
