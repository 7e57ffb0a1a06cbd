"""Prefetching in a thread."""

import collections
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetch(items: Iterable[T], ahead: int = 2) -> Iterator[T]:
    """Yields the same items in the same order, but computes the next ones in another thread.

    This is faster if items are computed by operations that release the interpreter, such as those
    of TensorFlow.

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
