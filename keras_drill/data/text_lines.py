"""Reads and checks the lines of text files."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from keras_drill.data.checks import check_is, is_whole, shown
from keras_drill.data.lines import Lines

_CHUNK = 1 << 20
_MOST_NAMED = 3  # number of files that messages name
_GZIP_MAGIC = b"\x1f\x8b"


class TextLines(Lines):
    """The lines of one or several UTF-8 text files. Each iteration reads the files again.

    Only `\\n` ends a line (a `\\r` before it is dropped), so other separators such as U+2028 do not
    change the number of lines. A text whose lines end in `\\r` alone raises a `ValueError`, and so
    do empty files and bytes that are not UTF-8. Files may be gzipped, with any file name. A
    byte-order mark is skipped. Empty lines are lines too.

    Args:
        files: Path or paths of the files, read in this order.
        first_line: Number of the first line to read, counted from 0 over all files.
        num_lines: Number of lines to read; `None` for all remaining lines.

    Example:

    >>> from keras_drill.data import TextLines
    >>> folder = getfixture("tmp_path")
    >>> _ = (folder / "a.txt").write_text("one two\\n\\nthree\\n")
    >>> list(TextLines(folder / "a.txt"))
    [b'one two', b'', b'three']
    >>> list(TextLines(folder / "a.txt", first_line=2))
    [b'three']
    """

    def __init__(
        self,
        files: str | os.PathLike | Sequence[str | os.PathLike],
        first_line: int = 0,
        num_lines: int | None = None,
    ):
        paths = [files] if isinstance(files, str | os.PathLike) else files
        if isinstance(paths, bytes | Lines) or not isinstance(paths, Iterable):
            raise ValueError(
                f"`files` must be a path or a list of paths. Received: files={shown(files)}"
            )
        paths = list(paths)
        for path in paths:
            check_is("files", path, (str, os.PathLike), "a path or a list of paths")
        if not paths:
            raise ValueError(f"`files` must name at least one file. Received: files={files!r}")
        for name, number in (("first_line", first_line), ("num_lines", num_lines)):
            if number is not None and not is_whole(number):
                raise ValueError(f"`{name}` must be an integer. Received: {name}={number!r}")
        if first_line < 0 or (num_lines is not None and num_lines < 0):
            raise ValueError(
                "`first_line` and `num_lines` must not be negative. "
                f"Received: first_line={first_line}, num_lines={num_lines}"
            )
        self.files = [Path(path) for path in paths]
        self.first_line = first_line
        self.num_lines = num_lines
        for path in self.files:
            if not path.exists():
                raise FileNotFoundError(f"No such text file. Received: {str(path)!r}")
            if path.is_dir():
                raise IsADirectoryError(
                    f"Expected a text file, found a folder. Received: {str(path)!r}"
                )
            if not path.is_file():
                raise ValueError(
                    "Expected a text file that can be read more than once, found a pipe or a "
                    f"device: write its content to a file first. Received: {str(path)!r}"
                )

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        last = None if self.num_lines is None else self.first_line + self.num_lines
        number = 0
        block: list[bytes] = []
        for path in self.files:
            for lines in _read_chunks(path):
                chosen = lines[
                    max(self.first_line - number, 0) : None if last is None else last - number
                ]
                number += len(lines)
                block.extend(chosen)
                while len(block) >= size:
                    yield block[:size]
                    block = block[size:]
                if last is not None and number >= last:
                    break
            if last is not None and number >= last:
                break
        if block:
            yield block

    def num_bytes(self) -> int:
        """Returns the size of the files on disk in bytes, compressed if they are gzipped."""
        return sum(path.stat().st_size for path in self.files)

    def fingerprint(self) -> str:
        """Returns a hexadecimal digest (hash) of the files' bytes and of the range of lines."""
        digest = hashlib.sha256(f"{self.first_line} {self.num_lines}".encode())
        for path in self.files:
            with open(path, "rb") as file:
                content = hashlib.sha256()
                while chunk := file.read(_CHUNK):
                    content.update(chunk)
            digest.update(content.digest())
        return digest.hexdigest()

    @property
    def origin(self) -> str:
        files = " and ".join(map(str, self.files))
        if len(self.files) > _MOST_NAMED:
            files = f"{self.files[0]} to {self.files[-1]} ({len(self.files):,} files)"
        if self.num_lines is None:
            return f"{files} from line {self.first_line + 1:,}" if self.first_line else files
        first, last = self.first_line + 1, self.first_line + self.num_lines
        lines = f"line {first:,}" if first == last else f"lines {first:,} to {last:,}"
        return f"{lines} of {files}"

    def __repr__(self) -> str:
        files = [str(path) for path in self.files]
        return f"TextLines({files}, first_line={self.first_line}, num_lines={self.num_lines})"


def _open(path: Path) -> gzip.GzipFile | BinaryIO:
    with open(path, "rb") as file:
        magic = file.read(2)
    return gzip.open(path, "rb") if magic == _GZIP_MAGIC else open(path, "rb")


def _read_chunks(path: Path) -> Iterator[list[bytes]]:
    """Yields the checked lines of one file, about a mebibyte at a time."""
    number, offset, returns = 0, 0, 0
    with _open(path) as file:
        while True:
            try:
                lines = file.readlines(_CHUNK)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(
                    f"The gzip file is damaged or incomplete ({error}). Received: {str(path)!r}"
                ) from error
            if not lines:
                break
            chunk = b"".join(lines)
            _check_text(chunk, path, number, offset)
            if number == 0:
                lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
            number += len(lines)
            offset += len(chunk)
            lines = [line.rstrip(b"\r\n") for line in lines]
            returns += sum(line.count(b"\r") for line in lines)
            if returns >= number:
                raise ValueError(
                    "Expected lines that end in a line feed; these end in a carriage return alone, "
                    f"as on old Macs. Convert the file: tr '\\r' '\\n'. Received: {str(path)!r}"
                )
            yield lines
    if number == 0:
        raise ValueError(f"The text file is empty. Received: {str(path)!r}")


def _check_text(chunk: bytes, path: Path, lines_before: int, bytes_before: int) -> None:
    zero = chunk.find(b"\0")
    if zero >= 0:
        line = lines_before + chunk.count(b"\n", 0, zero) + 1
        raise ValueError(
            f"Expected UTF-8 text, found a binary (or UTF-16) file: NUL byte in line {line}, at "
            f"byte {bytes_before + zero}. Received: {str(path)!r}"
        )
    try:
        chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        line = lines_before + chunk.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"Expected UTF-8 text: byte 0x{chunk[error.start]:02x} in line {line}, at byte "
            f"{bytes_before + error.start}, is not UTF-8 ({error.reason}). Convert the file, for "
            f"example with `iconv -f WINDOWS-1252 -t UTF-8`. Received: {str(path)!r}"
        ) from None
