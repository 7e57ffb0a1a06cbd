"""Locks between processes."""

import contextlib
import os
import sys
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    raise ImportError(
        "The caches of texts and the training runs of keras_drill need POSIX file locks (`fcntl`), "
        "which this platform does not have. Use Linux, macOS or WSL; layers, losses and models "
        "work on every platform. "
        f"Received: sys.platform={sys.platform!r}"
    ) from None


@contextlib.contextmanager
def file_lock(path: str | os.PathLike, wait: bool = True) -> Iterator[None]:
    """Context manager that only one process at a time can enter.

    The system releases the lock of a killed process.

    Args:
        path: the lock file. It is created if necessary and not removed. The process that holds the
            lock may remove the file.
        wait: whether to wait for a process that holds the lock.

    Raises:
        BlockingIOError: another process holds the lock, and `wait` is false.

    Example:

    >>> path = getfixture("tmp_path") / "lock"
    >>> with file_lock(path):
    ...     with file_lock(path, wait=False):
    ...         pass
    Traceback (most recent call last):
    BlockingIOError: ...
    """
    while True:
        with open(path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_at(file, path):  # the previous holder has removed the file
                continue
            yield
            return


def _is_at(file, path: str | os.PathLike) -> bool:
    """Returns whether an open file is still the file at this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
