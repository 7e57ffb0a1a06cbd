"""Writes files atomically: a file appears complete or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replaced_file(path: str | os.PathLike) -> Iterator[Path]:
    """Context manager for atomic writing: yields a temporary path and renames the file to `path`.

    After an error, or if the process is killed, an existing file at `path` is not changed. If
    `path` is a symbolic link, the target of the link is replaced.

    Args:
        path: the file. Its folder is created if necessary.

    Example:

    >>> path = getfixture("tmp_path") / "a.txt"
    >>> with replaced_file(path) as beside:
    ...     _ = beside.write_text("whole")
    >>> path.read_text()
    'whole'
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise ValueError(
            "`path` must be a new path or that of a regular file, not of a folder or a device. "
            f"Received: path={str(path)!r}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    try:  # keep the suffix, by which some writers choose the format
        descriptor, name = tempfile.mkstemp(
            f".new{path.suffix}", f".{path.name[:100]}.", path.parent
        )
    except OSError as error:
        error.filename = str(path)  # name the user's path, not the temporary one
        raise
    os.close(descriptor)
    beside = Path(name)
    try:
        yield beside
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)  # files of mkstemp are readable only for their owner
        os.replace(beside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the folder does not exist any more
            beside.unlink()
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)  # the error of a full disk does not name the file
        raise


def replace_file(path: str | os.PathLike, text: str) -> None:
    """Writes a UTF-8 text file atomically, by a temporary file and a rename."""
    with replaced_file(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="")
