"""Files and folders that appear whole or not at all."""

import os
import tempfile
from pathlib import Path


def replace_file(path: str | os.PathLike, text: str) -> None:
    """Writes a UTF-8 text file beside its place and renames it there."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)  # mkstemp makes files that only their owner may read
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
