"""A corpus of pairs, a source and a target, with its train, valid and test parts."""

import dataclasses
import hashlib
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from keras_drill.data.text_lines import TextLines

_SPLITS = {
    "train": ("train", "training", "trn"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "tst"),
}
_BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Pairs of lines: line i of `target` translates, or answers, line i of `source`.

    Attributes:
        source: The lines of one side.
        target: As many lines of the other.
    """

    source: TextLines
    target: TextLines

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return zip(iter(self.source), iter(self.target), strict=True)


class ParallelCorpus:
    """Finds the train, valid and test pairs of a corpus.

    - A folder with two text files a split, named by their languages: `train.de` and `train.en`,
      `val.de` and `val.en` (or `valid`, `dev`, `validation`), `test_2016.de` and `test_2016.en`;
      any of them gzipped (`.gz`).
    - A folder with one file of two columns a split, `train.tsv`, `valid.tsv`, `test.tsv`: the
      source, a tab, the target (and more columns, which are not read).
    - One such file, or two text files `(source, target)`, which are cut: about 90 % of the pairs
      for training, 5 % for validation and 5 % for testing. The target's text decides, so that no
      target is in two of them, and the same pair always in the same.
    - A mapping `{"train": ..., "valid": ..., "test": ...}` from splits to files of two columns or
      to pairs of text files.

    Empty lines are kept as empty. See `TextLines` for what a line is.

    Args:
        path: Folder, file, pair of files, or mapping.
        source: Language of the sources, the end of their files' names. Needed for folders of two
            files a split.
        target: Language of the targets.

    Attributes:
        splits: Mapping from the names of the splits that are there to `ParallelText`.

    Raises:
        FileNotFoundError: There is nothing at `path`, or no file for a language.
        ValueError: The two sides have different numbers of lines, a line has not two columns, or
            a file is not UTF-8 text.

    Example:

    >>> folder = getfixture("tmp_path")
    >>> for name, text in {"train.de": "ein Haus\\n", "train.en": "a house\\n"}.items():
    ...     _ = (folder / name).write_text(text)
    >>> corpus = ParallelCorpus(folder, source="de", target="en")
    >>> list(corpus.splits["train"])
    [(b'ein Haus', b'a house')]
    """

    def __init__(
        self,
        path: str | os.PathLike | Sequence | Mapping,
        source: str | None = None,
        target: str | None = None,
    ):
        self.path = path
        self.source = source
        self.target = target
        if isinstance(path, Mapping):
            unknown = set(path) - set(_SPLITS)
            if unknown or "train" not in path:
                raise ValueError(
                    "`path` as a mapping must have the key 'train' and may have 'valid' and "
                    f"'test'. Received: path={path!r}"
                )
            self.splits = {name: _read(path[name]) for name in _SPLITS if name in path}
        elif isinstance(path, str | os.PathLike) and Path(path).is_dir():
            self.splits = self._folder_splits(Path(path))
        else:
            whole = _read(path)
            sides = whole.source, whole.target
            self.splits = {
                name: ParallelText(*[_Part(side, whole.target, name) for side in sides])
                for name in _SPLITS
            }

    def _folder_splits(self, folder: Path) -> dict[str, ParallelText]:
        languages = (self.source, self.target)
        if None in languages or self.source == self.target:
            suffixes: tuple = ("tsv",)
            if any(languages):
                raise ValueError(
                    "`source` and `target` must be two languages, or both None for a folder of "
                    f"'.tsv' files. Received: source={self.source!r}, target={self.target!r}"
                )
        else:
            suffixes = languages
        found: dict[str, dict[str, Path]] = {}
        for path in sorted(folder.iterdir()):
            stem, _, suffix = path.name.removesuffix(".gz").rpartition(".")
            words = re.findall("[a-z]+", stem.lower())
            splits = [name for name, aliases in _SPLITS.items() if set(aliases) & set(words)]
            if suffix not in suffixes or len(splits) != 1 or path.name.startswith("."):
                continue
            if suffix in found.setdefault(splits[0], {}):
                raise ValueError(
                    f"Found several files that may be the {splits[0]!r} text and cannot choose; "
                    "name them in a mapping {'train': ..., 'valid': ..., 'test': ...}. Received: "
                    f"{[str(found[splits[0]][suffix]), str(path)]}"
                )
            found[splits[0]][suffix] = path
        if "train" not in found:
            raise FileNotFoundError(
                f"Found no training pairs in the folder: expected {_names('train', suffixes)}. It "
                f"holds {sorted(path.name for path in folder.iterdir())[:10]}. "
                f"Received: path={str(folder)!r}"
            )
        for name, files in found.items():
            missing = [suffix for suffix in suffixes if suffix not in files]
            if missing:
                raise FileNotFoundError(
                    f"The folder has no {_names(name, missing)} beside "
                    f"{[path.name for path in files.values()]}. Received: path={str(folder)!r}"
                )
        return {
            name: _read([found[name][suffix] for suffix in suffixes])
            for name in _SPLITS
            if name in found
        }


def _names(split: str, suffixes) -> str:
    return " and ".join(f"'{split}.{suffix}'" for suffix in suffixes)


def _read(files) -> ParallelText:
    """The pairs of one file of two columns, or of two text files, checked to match."""
    files = [files] if isinstance(files, str | os.PathLike) else list(files)
    if len(files) == 1:
        return ParallelText(_Column(files[0], 0), _Column(files[0], 1))
    if len(files) != 2:
        raise ValueError(
            "Expected one file of two columns, or a file of sources and one of targets. "
            f"Received: {[str(file) for file in files]}"
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


class _Column(TextLines):
    """One column of the lines of a file that has two, with a tab between them."""

    def __init__(self, file, column: int):
        super().__init__(file)
        self.column = column

    def blocks(self, size: int = _BLOCK) -> Iterator[list[bytes]]:
        number = 0
        for block in super().blocks(size):
            columns = [line.split(b"\t") for line in block]
            for place, parts in enumerate(columns):
                if len(parts) < 2:
                    raise ValueError(
                        f"Expected a source, a tab and a target in line {number + place + 1} of "
                        f"{self.files[0]}. Received: {block[place][:80].decode()!r}"
                    )
            number += len(block)
            yield [parts[self.column] for parts in columns]

    def fingerprint(self) -> str:
        return hashlib.sha256(f"{super().fingerprint()} {self.column}".encode()).hexdigest()


class _Part(TextLines):
    """The lines of one side whose targets belong to a split."""

    def __init__(self, side: TextLines, targets: TextLines, split: str):
        super().__init__(side.files)
        self.side = side
        self.targets = targets
        self.split = split

    def blocks(self, size: int = _BLOCK) -> Iterator[list[bytes]]:
        lines = zip(iter(self.side), iter(self.targets), strict=True)
        chosen = (line for line, target in lines if _split_of(target) == self.split)
        while block := list(itertools.islice(chosen, size)):
            yield block

    def fingerprint(self) -> str:
        parts = f"{self.side.fingerprint()} {self.targets.fingerprint()} {self.split}"
        return hashlib.sha256(parts.encode()).hexdigest()


def _split_of(target: bytes) -> str:
    share = int.from_bytes(hashlib.sha256(target).digest()[:4], "big") / 2**32
    return "train" if share < 0.9 else "valid" if share < 0.95 else "test"
