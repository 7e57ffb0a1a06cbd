"""Pairs of lines, from one file with two columns or from two files."""

import dataclasses
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator

from keras_drill.data.checks import shown
from keras_drill.data.content_splits import cut_by_content
from keras_drill.data.lines import Lines, as_lines
from keras_drill.data.text_lines import TextLines


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Pairs of source and target lines, for translation or dialogue.

    Line i of `target` is the translation of line i of `source`, or the response to it. Iteration
    yields pairs `(source, target)` of lines as UTF-8 bytes, and raises a `ValueError` if the
    numbers of lines differ.

    Attributes:
        source: The lines of the sources, as `keras_drill.data.Lines`. A list of strings is
            converted.
        target: The lines of the targets, as many as sources, of the same type.
    """

    source: Lines
    target: Lines

    @property
    def origin(self) -> str:
        """Where the pairs come from, such as the paths of files, for error messages."""
        return " and ".join(dict.fromkeys([self.source.origin, self.target.origin]))

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            object.__setattr__(self, side, as_lines(getattr(self, side)))

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for number, pair in enumerate(itertools.zip_longest(self.source, self.target), start=1):
            if None in pair:
                raise ValueError(
                    f"Sources and targets must have the same number of lines: line {number} has no "
                    f"counterpart. Received: {self!r}"
                )
            yield pair


def read_pairs(files) -> ParallelText:
    """Reads sentence pairs from a file with tab-separated columns, or from two text files.

    Raises:
        ValueError: `files` has another form, or the two files differ in their number of lines.
    """
    if not isinstance(files, str | os.PathLike | Iterable):
        raise ValueError(
            "`path` must be a file with tab-separated sources and targets, or a list of a file of "
            f"sources and a file of targets. Received: path={shown(files)}"
        )
    files = [files] if isinstance(files, str | os.PathLike) else list(files)
    if len(files) == 1:
        return ParallelText(_Column(files[0], 0), _Column(files[0], 1))
    if len(files) != 2:
        raise ValueError(
            "Expected one file with tab-separated sources and targets, or a file of sources and a "
            f"file of targets. Received: {[str(file) for file in files]}"
        )
    source, target = TextLines(files[0]), TextLines(files[1])
    counts = [sum(map(len, side.blocks())) for side in (source, target)]
    if counts[0] != counts[1]:
        raise ValueError(
            "Sources and targets must have the same number of lines: line "
            f"{min(counts) + 1} of {files[int(counts[1] > counts[0])]} and those after it have no "
            f"counterpart. Received: {counts[0]} lines in {files[0]}, {counts[1]} in {files[1]}"
        )
    return ParallelText(source, target)


def cut_by_target(pairs: ParallelText) -> dict[str, ParallelText]:
    """Splits pairs into about 90 %, 5 % and 5 %. Pairs with equal targets are in one split."""
    sources = cut_by_content(pairs.source, pairs.target)
    targets = cut_by_content(pairs.target, pairs.target)
    return {name: ParallelText(sources[name], targets[name]) for name in sources}


class _Column(TextLines):
    """One column of a file with two or more tab-separated columns."""

    def __init__(self, file, column: int):
        super().__init__(file)
        self.column = column

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        number, width = 0, 0
        for block in super().blocks(size):
            columns = [line.split(b"\t") for line in block]
            width = width or len(columns[0])
            for place, parts in enumerate(columns):
                if len(parts) < 2 or len(parts) != width:
                    raise ValueError(
                        f"Expected a source, a tab and a target in line {number + place + 1} of "
                        f"{self.files[0]}, and as many columns as in line 1, which has {width}. "
                        f"Received: columns: {len(parts)}, line: "
                        f"{block[place][:80].decode(errors='ignore')!r}"
                    )
            number += len(block)
            yield [parts[self.column] for parts in columns]

    def fingerprint(self) -> str:
        return hashlib.sha256(f"{super().fingerprint()} {self.column}".encode()).hexdigest()
