"""Files that appear whole or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replaced_file(path: str | os.PathLike) -> Iterator[Path]:
    """Gives a name beside `path` to write to, and renames the file there when all went well.

    After an error, and in a process that is killed, what was at `path` stays as it was. A link is
    followed: what it points to is replaced.

    Args:
        path: the file; its folder is made where it is missing.

    Example:

    >>> path = getfixture("tmp_path") / "a.txt"
    >>> with replaced_file(path) as beside:
    ...     _ = beside.write_text("whole")
    >>> path.read_text()
    'whole'
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise ValueError(f"`path` must be a file or must not exist. Received: path={str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:  # the same suffix: some writers choose their format by it
        descriptor, name = tempfile.mkstemp(
            f".new{path.suffix}", f".{path.name[:100]}.", path.parent
        )
    except OSError as error:
        error.filename = str(path)  # the user's name of it, not ours
        raise
    os.close(descriptor)
    beside = Path(name)
    try:
        yield beside
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)  # mkstemp makes files that only their owner may read
        os.replace(beside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # of a folder that is gone
            beside.unlink()
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)  # a full disk does not name it
        raise


def replace_file(path: str | os.PathLike, text: str) -> None:
    """Writes a UTF-8 text file beside its place and renames it there."""
    with replaced_file(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="")
