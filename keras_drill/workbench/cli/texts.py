"""Texts that come from arguments, files and pipes, and where the answers to them go."""

import codecs
import contextlib
import dataclasses
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any, TextIO

from keras_drill.workbench.cli.arguments import output_file

_MAX_BYTES = 1 << 16  # of a batch whose texts are padded to the longest
_MAX_LINE_BYTES = 1 << 28
_ESCAPES = {ord(each): f"\\u{ord(each):04x}" for each in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"} | {
    ord("\\"): "\\\\",
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
}
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclasses.dataclass(frozen=True)
class Text:
    """One text of the input.

    Args:
        number: its place among the arguments or lines, from 1.
        content: the text; `None` where it could not be read, which has been said.
        where: its place in words, for errors.
    """

    number: int
    content: str | None
    where: str = ""


class TextReader:
    """Reads texts and says which of them cannot be read, without losing the others.

    Attributes:
        passed_over: how many texts could not be read.

    Example:

    >>> [text.content for text in TextReader().arguments(["one", "two"])]
    ['one', 'two']
    """

    def __init__(self):
        self.passed_over = 0

    def arguments(self, words: Sequence[str]) -> list[Text]:
        """The texts that are given as arguments."""
        # In other locales, too, the bytes that were typed are UTF-8.
        return [
            self._text(f"text {number}", number, os.fsencode(word))
            for number, word in enumerate(words, start=1)
        ]

    def lines(self, name: str) -> Iterator[list[Text]]:
        """The lines of a file, or of the standard input for `"-"`: as many as there are yet."""
        return self._lines(_open(name), "standard input" if name == "-" else name)

    def _lines(
        self, opened: contextlib.AbstractContextManager[BufferedIOBase], shown: str
    ) -> Iterator[list[Text]]:
        number = 0
        with opened as file:
            for block in _blocks(file, shown):
                block = [line.removesuffix(b"\r") for line in block]
                if number == 0:
                    block[0] = block[0].removeprefix(_BYTE_ORDER_MARK)
                    _check_ends(block, shown)
                yield [
                    self._text(f"{shown}, line {place}", place, line)
                    for place, line in enumerate(block, start=number + 1)
                ]
                number += len(block)

    def _text(self, where: str, number: int, content: bytes) -> Text:
        place = content.find(b"\0")
        problem = f"byte {place + 1} is NUL, which is no text"
        if place < 0:
            try:
                return Text(number, content.decode("utf-8"), where)
            except UnicodeDecodeError as error:
                problem = f"byte {error.start + 1}, 0x{content[error.start]:02x}, is not UTF-8"
        return self.pass_over(number, where, problem)

    def pass_over(self, number: int, where: str, problem: str) -> Text:
        """The place of a text that cannot be taken; says why."""
        self.passed_over += 1
        print(f"keras-drill: error: {where}: {problem}; it is passed over", file=sys.stderr)
        return Text(number, None, where)


def batches(blocks: Iterable[Sequence[Text]], most: int = 64) -> Iterator[list[Text]]:
    """Cuts blocks of texts into batches of `most` or fewer to work on at once, in their order."""
    for block in blocks:
        batch: list[Text] = []
        longest = 0
        for text in block:
            longest = max(longest, len(text.content or ""))
            if batch and (len(batch) == most or longest * (len(batch) + 1) > _MAX_BYTES):
                yield batch
                batch, longest = [], len(text.content or "")
            batch.append(text)
        if batch:
            yield batch


@contextlib.contextmanager
def answers_to(path: str | None) -> Iterator[TextIO]:
    """The file that answers go to: the standard output, or one that appears whole at the end."""
    if path is None:
        yield sys.stdout
        return
    from keras_drill.data.atomic import replaced_file

    with replaced_file(path) as beside, open(beside, "w", encoding="utf-8", newline="") as file:
        yield file


def add_output_arguments(parser, formats: Sequence[str]) -> None:
    """Adds `--format` and `--output`."""
    parser.add_argument(
        "--format",
        choices=tuple(formats),
        default="text",
        help="text to read, or records, one a line, for programs (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write to a file, which appears when it is complete (default: standard output)",
    )


def escaped(text: str) -> str:
    """The text as a column of a line that every reader takes for one.

    Tabs, backslashes, and all that Unicode or Python call a line break are escaped as in JSON; so
    is a quote at the beginning, with which readers of CSV begin a column of several lines.

    Example:

    >>> print(escaped("a\\tb\\u2028c"))
    a\\tb\\u2028c
    """
    escaped = text.translate(_ESCAPES)
    return f"\\{escaped}" if escaped.startswith('"') else escaped


def check_output(args) -> None:
    """Makes sure that `--output` can be written."""
    if args.output is not None:
        output_file("--output", args.output)


def _open(name: str) -> contextlib.AbstractContextManager[BufferedIOBase]:
    if name != "-":
        return Path(name).open("rb")
    if sys.stdin is None:
        raise ValueError("the standard input is closed, and no texts are given")
    if sys.stdin.isatty():
        print("Type texts, one a line; Ctrl-D ends them.", file=sys.stderr)
    # Its hint, `BinaryIO`, leaves `read1` out.
    return contextlib.nullcontext(sys.stdin.buffer)  # type: ignore[arg-type]  # is buffered


def _check_ends(block: list[bytes], shown: str) -> None:
    if sum(line.count(b"\r") for line in block) >= len(block):
        raise ValueError(
            f"{shown}: lines end in a carriage return alone, as on old Macs, and a line feed is "
            "expected: convert them with tr '\\r' '\\n'"
        )


def _blocks(file: BufferedIOBase, shown: str) -> Iterator[list[bytes]]:
    """Lists of lines, each as soon as its lines are there; of a gzipped file, what is in it."""
    reader: Any = file
    if not isinstance(reader, io.BufferedReader):
        reader = io.BufferedReader(reader)
    try:
        while reader.peek(2)[:2] == _GZIP_MAGIC:
            reader = io.BufferedReader(gzip.GzipFile(fileobj=reader))
        _check_utf8(reader.peek(4)[:4], shown)
        yield from _lines_of(reader)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{shown}: the gzip file is damaged or incomplete ({error})") from None


def _check_utf8(beginning: bytes, shown: str) -> None:
    """Raises one error for UTF-16, each of whose lines would be one."""
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if beginning.startswith(marks) or (len(beginning) == 4 and beginning.count(0) == 2):
        raise ValueError(
            f"{shown}: this is UTF-16 text, and UTF-8 is expected: convert it with "
            "iconv -f UTF-16 -t UTF-8"
        )


def _lines_of(file: BufferedIOBase) -> Iterator[list[bytes]]:
    parts: list[bytes] = []  # of a line whose end is still to come
    size = 0
    while chunk := file.read1(1 << 16):
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*parts, lines[0]])
            parts, size = [], 0
            yield lines
        parts.append(rest)
        size += len(rest)
        if size > _MAX_LINE_BYTES:  # a device that never ends, for example
            raise ValueError(f"a line has more than {_MAX_LINE_BYTES >> 20} MiB: this is no text")
    if any(parts):
        yield [b"".join(parts)]
