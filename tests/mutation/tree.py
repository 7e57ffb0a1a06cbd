"""A copy of the project, of its own, in which sources are mutated."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def list_files(project: Path) -> list[str]:
    """The files that git tracks, or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [name for name in listed.split("\0") if name and (project / name).is_file()]


def copy_project(project: Path, tree: Path) -> list[str]:
    """Makes `tree` equal to the project, and returns the files that changed."""
    names = list_files(project)
    changed = [name for name in names if not _is_equal(project / name, tree / name)]
    for name in changed:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes((project / name).read_bytes())
    old = {path.relative_to(tree).as_posix() for path in tree.rglob("*.py")} - set(names)
    for name in old:
        (tree / name).unlink()
    return sorted({*changed, *old})


@contextlib.contextmanager
def mutated(tree: Path, file: str, code: str) -> Iterator[None]:
    """Holds `code` in a file of the tree, and the old contents with their old time afterwards."""
    path = tree / file
    before, times = path.read_bytes(), path.stat()
    try:
        path.write_text(code, encoding="utf-8")
        yield
    finally:
        path.write_bytes(before)
        # Compiled files are known to be valid by this time.
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _is_equal(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()
