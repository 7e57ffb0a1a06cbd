"""Input texts from arguments, files and pipes, and output to a file or standard output."""

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

_MAX_BYTES = 1 << 16  # maximum size of a batch, whose texts are padded to the longest text
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
        number: number of the argument or line, from 1.
        content: the text; `None` if it is not valid, which the reader has reported.
        where: description of the text's position, for error messages.
    """

    number: int
    content: str | None
    where: str = ""


class TextReader:
    """Reads texts, and skips invalid texts with a message on standard error.

    Attributes:
        passed_over: number of skipped texts.

    Example:

    >>> [text.content for text in TextReader().arguments(["one", "two"])]
    ['one', 'two']
    """

    def __init__(self):
        self.passed_over = 0

    def arguments(self, words: Sequence[str]) -> list[Text]:
        """Returns the texts that are given as arguments."""
        # The typed bytes are UTF-8, also in other locales.
        return [
            self._text(f"text {number}", number, os.fsencode(word))
            for number, word in enumerate(words, start=1)
        ]

    def lines(self, name: str) -> Iterator[list[Text]]:
        """Yields the lines of a file, or of standard input if `name` is `"-"`.

        The lines come in blocks, as soon as they are available.
        """
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
        problem = f"byte {place + 1} is NUL, which is not allowed"
        if place < 0:
            try:
                return Text(number, content.decode("utf-8"), where)
            except UnicodeDecodeError as error:
                problem = f"byte {error.start + 1}, 0x{content[error.start]:02x}, is not UTF-8"
        return self.pass_over(number, where, problem)

    def pass_over(self, number: int, where: str, problem: str) -> Text:
        """Reports an invalid text on standard error, and returns a `Text` without content.

        Args:
            number: Number of the text.
            where: Description of the text's position.
            problem: Why the text is invalid.
        """
        self.passed_over += 1
        print(f"keras-drill: error: {where}: {problem}; this text is skipped", file=sys.stderr)
        return Text(number, None, where)


def batches(blocks: Iterable[Sequence[Text]], most: int = 64) -> Iterator[list[Text]]:
    """Splits blocks of texts into batches of at most `most` texts, in the texts' order."""
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
    """Context manager that opens the file for the outputs.

    Args:
        path: Path of the file, which is created when it is complete; `None` is standard output.
    """
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
        help="text to read, or one record per line for programs (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="file for the output, which is created when it is complete (default: standard output)",
    )


def escaped(text: str) -> str:
    """Escapes a text for a column of a TSV file.

    Tabs, backslashes and all line breaks of Unicode and Python are escaped as in JSON. A quote at
    the beginning is escaped too, because CSV readers would begin a quoted column there.

    Example:

    >>> print(escaped("a\\tb\\u2028c"))
    a\\tb\\u2028c
    """
    escaped = text.translate(_ESCAPES)
    return f"\\{escaped}" if escaped.startswith('"') else escaped


def check_output(args) -> None:
    """Raises `ConfigError` if the file of `--output` cannot be written."""
    if args.output is not None:
        output_file("--output", args.output)


def _open(name: str) -> contextlib.AbstractContextManager[BufferedIOBase]:
    if name != "-":
        return Path(name).open("rb")
    if sys.stdin is None:
        raise ValueError("give texts as arguments or in a file, because standard input is closed")
    if sys.stdin.isatty():
        print("Type one text per line, then press Ctrl-D.", file=sys.stderr)
    # The type hint of the buffer, `BinaryIO`, lacks `read1`.
    return contextlib.nullcontext(sys.stdin.buffer)  # type: ignore[arg-type]  # is buffered


def _check_ends(block: list[bytes], shown: str) -> None:
    if sum(line.count(b"\r") for line in block) >= len(block):
        raise ValueError(
            f"{shown}: lines must end with a line feed, not with a carriage return alone; convert "
            "the file with tr '\\r' '\\n'"
        )


def _blocks(file: BufferedIOBase, shown: str) -> Iterator[list[bytes]]:
    """Yields lists of lines as soon as they are available. Gzipped files are decompressed."""
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
    """Raises `ValueError` for UTF-16, instead of one message for each line."""
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if beginning.startswith(marks) or (len(beginning) == 4 and beginning.count(0) == 2):
        raise ValueError(
            f"{shown}: the text must be UTF-8, not UTF-16; convert the file with "
            "iconv -f UTF-16 -t UTF-8"
        )


def _lines_of(file: BufferedIOBase) -> Iterator[list[bytes]]:
    parts: list[bytes] = []  # beginning of a line whose end was not read yet
    size = 0
    while chunk := file.read1(1 << 16):
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*parts, lines[0]])
            parts, size = [], 0
            yield lines
        parts.append(rest)
        size += len(rest)
        if size > _MAX_LINE_BYTES:  # for example a device that never ends
            raise ValueError(
                f"a line must have at most {_MAX_LINE_BYTES >> 20} MiB, but the input has a longer "
                "line"
            )
    if any(parts):
        yield [b"".join(parts)]
