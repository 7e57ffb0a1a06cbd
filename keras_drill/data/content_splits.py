"""Splits texts into train, valid and test by a hash of each line."""

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from keras_drill.data.corpus import Corpus
from keras_drill.data.lines import Lines
from keras_drill.data.splits import SPLITS, split_in_name
from keras_drill.data.text_lines import TextLines


def text_splits(path: str | os.PathLike) -> Mapping[str, Lines]:
    """Finds the splits of a corpus as `Corpus` does, or splits its lines by their content.

    A text file is split into about 90 %, 5 % and 5 % of its lines, for train, valid and test. A
    folder with training text only is also split in this way. A folder whose files are not named
    after splits is read as one text, in the order of the file names, and split.

    Args:
        path: A text file or a folder.

    Example:

    >>> path = getfixture("tmp_path") / "a.txt"
    >>> _ = path.write_text("".join(f"line {number}\\n" for number in range(999)))
    >>> splits = text_splits(path)
    >>> {name: len(list(lines)) for name, lines in splits.items()}
    {'train': 902, 'valid': 56, 'test': 41}
    """
    folder = Path(path)
    if not folder.is_dir():
        return cut_by_content(TextLines(path))
    try:
        splits = Corpus(folder).splits
    except ValueError:
        files = sorted(each for each in folder.glob("[!.]*") if each.is_file())
        if not files or any(split_in_name(file.name) for file in files):
            raise
        return cut_by_content(TextLines(files))
    return splits if len(splits) > 1 else cut_by_content(splits["train"])


def cut_by_content(lines: Lines, keys: Lines | None = None) -> dict[str, Lines]:
    """Splits lines into about 90 %, 5 % and 5 %. Equal lines are in the same split.

    Args:
        lines: The lines. An empty line belongs to the split of the line before it.
        keys: As many other lines, which determine the splits instead. For example, with targets as
            keys, all pairs with the same target are in the same split.
    """
    return {name: _Part(lines, keys, name) for name in SPLITS}


class _Part(Lines):
    """The lines whose keys belong to a split."""

    def __init__(self, lines: Lines, keys: Lines | None, split: str):
        self.lines = lines
        self.keys = keys
        self.split = split

    def blocks(self, size: int = 4096) -> Iterator[list[bytes]]:
        chosen = self._chosen()
        while block := list(itertools.islice(chosen, size)):
            yield block

    def fingerprint(self) -> str:
        keys = "" if self.keys is None else self.keys.fingerprint()
        parts = f"{self.lines.fingerprint()} {keys} {self.split}"
        return hashlib.sha256(parts.encode()).hexdigest()

    @property
    def origin(self) -> str:
        return f"the {self.split} part of {self.lines.origin}"

    def __repr__(self) -> str:
        return f"{self.split} part of {self.lines!r}"

    def _chosen(self) -> Iterator[bytes]:
        if self.keys is None:
            split = ""
            for line in self.lines:
                if line.strip() or not split:
                    split = _split_of(line)
                if split == self.split:
                    yield line
        else:
            for line, key in zip(iter(self.lines), iter(self.keys), strict=True):
                if _split_of(key) == self.split:
                    yield line


def _split_of(key: bytes) -> str:
    share = int.from_bytes(hashlib.sha256(key).digest()[:4], "big") / 2**32
    return "train" if share < 0.9 else "valid" if share < 0.95 else "test"
