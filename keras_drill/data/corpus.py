"""Finds the train, valid and test text of a corpus of plain text."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_drill.data.checks import check_is
from keras_drill.data.lines import Lines
from keras_drill.data.splits import SPLITS, check_splits, name_of_files, split_in_name
from keras_drill.data.text_lines import TextLines

_TEXT_FILE = re.compile(r"\.txt(\.gz)?$", re.IGNORECASE)
_SUFFIXES = ("txt", "text", "tokens", "tok", "raw")
_PATHS = str | os.PathLike | Sequence[str | os.PathLike]


class Corpus:
    """Finds the train, valid and test text of a corpus.

    - A folder may have a file for each split, whose name contains the split as a word: "train",
      "valid" (or "val", "dev", "validation") or "test". The name ends in `.txt`, `.text`,
      `.tokens`, `.tok`, `.raw` or the split, or has no ending: `ptb.train.txt`, `wiki.train`,
      `train`. Names with the word "char" (`ptb.char.train.txt`) are ignored. Files may be gzipped
      (`.gz`). Several files of a split must be numbered from 0 or 1 (`train-00000-of-00002.txt`);
      `test_2016.txt` beside `test_2017.txt` is an error. Instead of files, a folder may have
      sub-folders `train/`, `valid/`, `test/`, whose text files may have any names.
    - A folder without such names is one text: all files that end in `.txt` or `.txt.gz`, also in
      sub-folders, in the order of their names. This text is split like files.
    - One or several files are split by lines: the first 90 % for training, then 5 % for validation,
      and the last 5 % for testing. If one of the three would have only blank lines, the shares are
      shares of the lines that are not blank.
    - A mapping `{"train": ..., "valid": ..., "test": ...}` has the file, the files or the
      `keras_drill.data.Lines` of each split. "valid" and "test" are optional.

    By default, the corpus must have training text. To evaluate a text as a whole, use
    `split=False`. Files, also those of a folder without splits, then form one text, whose key in
    `splits` is the name of the file, or the names joined by " + ". With `split=False`, a folder or
    a mapping need not have training text.

    Args:
        path: Folder, file, list of files, or mapping from split to file, files or `Lines`.
        split: Whether to split text that has no splits, and to raise an error if there is no
            training text.

    Attributes:
        splits: Mapping from the names of the existing splits to their `Lines`. See above for files
            with `split=False`.
        train, valid, test: The `Lines` of one split. Each attribute raises a `ValueError` if the
            corpus does not have the split.

    Example:

    >>> from keras_drill.data import Corpus
    >>> folder = getfixture("tmp_path")
    >>> for name in ("train", "valid", "test"):
    ...     _ = (folder / f"ptb.{name}.txt").write_text(f"the {name} text\\n")
    >>> corpus = Corpus(folder)
    >>> list(corpus.splits), list(corpus.valid)
    (['train', 'valid', 'test'], [b'the valid text'])
    >>> Corpus(folder / "ptb.test.txt", split=False).splits.keys()
    dict_keys(['ptb.test.txt'])
    """

    def __init__(
        self,
        path: str | os.PathLike | Sequence | Mapping[str, _PATHS | Lines],
        split: bool = True,
    ):
        self.path = path
        self.splits: dict[str, Lines]
        check_is("path", path, (str, os.PathLike, Sequence, Mapping), "a path, paths or a mapping")
        if isinstance(path, Mapping):
            check_splits(path, needs_train=split)
            self.splits = {name: _lines(path[name]) for name in SPLITS if name in path}
        elif isinstance(path, str | os.PathLike):
            if not Path(path).exists():
                raise FileNotFoundError(
                    "`path` must be a text file or a folder with train, valid and test text; "
                    f"there is nothing there. Received: path={str(path)!r}"
                )
            if Path(path).is_dir():
                self.splits = _folder_splits(Path(path), needs_train=split)
            else:
                self.splits = _file_splits([path], split)
        else:
            self.splits = _file_splits(path, split)

    @property
    def train(self) -> Lines:
        return self._split("train")

    @property
    def valid(self) -> Lines:
        return self._split("valid")

    @property
    def test(self) -> Lines:
        return self._split("test")

    def _split(self, name: str) -> Lines:
        if name not in self.splits:
            raise ValueError(
                f"The corpus has no {name!r} text, only {list(self.splits)}; expected a file "
                f"such as '{name}.txt', 'wiki.{name}.tokens' or 'ptb.{name}.txt'. "
                f"Received: path={self.path!r}"
            )
        return self.splits[name]


def _lines(text: _PATHS | Lines) -> Lines:
    return text if isinstance(text, Lines) else TextLines(text)


def _file_splits(files: Sequence[str | os.PathLike], split: bool) -> dict[str, Lines]:
    if not split:
        return {name_of_files(files): TextLines(files)}
    total = sum(len(block) for block in TextLines(files).blocks())
    if total < 3:
        raise ValueError(
            "Text without train, valid and test files is split into these by lines, so it must "
            f"have at least 3 lines, not {total}. Received: {[str(file) for file in files]}"
        )
    held_out = max(total // 20, 1)
    splits = _cut_lines(files, total - 2 * held_out, total - held_out, total)
    if all(any(line.strip() for line in lines) for lines in splits.values()):
        return splits
    # Count only lines that are not blank, so that each part has some.
    filled = [number for number, line in enumerate(TextLines(files)) if line.strip()]
    if not filled:
        raise ValueError(
            f"The text holds no words, only white space. Received: {[str(file) for file in files]}"
        )
    if len(filled) < 3:
        raise ValueError(
            "Text without train, valid and test files is split into these by lines, so it must "
            f"have at least 3 lines with words, not {len(filled)}. "
            f"Received: {[str(file) for file in files]}"
        )
    held_out = max(len(filled) // 20, 1)
    return _cut_lines(files, filled[-2 * held_out], filled[-held_out], total)


def _cut_lines(
    files: Sequence[str | os.PathLike], valid: int, test: int, total: int
) -> dict[str, Lines]:
    """Makes the splits from the first lines of the valid and test text and the number of lines."""
    return {
        "train": TextLines(files, 0, valid),
        "valid": TextLines(files, valid, test - valid),
        "test": TextLines(files, test, total - test),
    }


def _folder_splits(folder: Path, needs_train: bool) -> dict[str, Lines]:
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = _split_of(path)
        if split is not None:
            found.setdefault(split, []).append(path)
    if not found:
        files = [path for path in _files_in(folder) if _TEXT_FILE.search(path.name)]
        if files:
            return _file_splits(files, needs_train)
    if "train" not in found if needs_train else not found:
        what, name = ("training", "train") if needs_train else ("train, valid or test", "test")
        instead = "" if needs_train else ", or the path of the text's own file"
        raise ValueError(
            f"Found no {what} text in the folder: expected a file such as '{name}.txt', "
            f"'wiki.{name}.tokens' or 'ptb.{name}.txt' (or .gz), a sub-folder '{name}', or, "
            f"without any of these, files of any names that end in '.txt'{instead}."
            " Entries of the folder (at most ten): "
            f"{sorted(path.name for path in folder.iterdir())[:10]}. "
            f"Received: path={str(folder)!r}"
        )
    return {name: _text_of(found[name], name) for name in SPLITS if name in found}


def _split_of(path: Path) -> str | None:
    """Returns the split of a file or sub-folder by its name; `None` if the name has no split."""
    name = path.name.lower().removesuffix(".gz")
    words = re.findall("[a-z]+", name)
    if name.startswith(".") or "char" in words:  # Penn Treebank, split into characters
        return None
    split = split_in_name(name)
    if split is None:
        return None
    if path.is_dir():
        return split if len(words) == 1 else None
    suffix = name.rpartition(".")[2] if "." in name else "txt"
    return split if suffix in (*_SUFFIXES, *SPLITS[split]) else None


def _text_of(paths: list[Path], split: str) -> TextLines:
    """Finds the text of a split: a file, a folder of files, or numbered parts of either kind."""
    numbers = _part_numbers([path.name for path in paths])
    if numbers is None:
        raise ValueError(
            f"Found several files that may be the {split!r} text. If these are parts of one text, "
            f"number them from 0 or 1 without gaps, or put them in a sub-folder {split!r}. "
            "Otherwise give one file, or a mapping {'train': ..., 'valid': ..., 'test': ...} of "
            f"files, instead of the folder. Received: {[str(path) for path in paths]}"
        )
    paths = [path for _, path in sorted(zip(numbers, paths, strict=True))]
    files = [file for path in paths for file in ([path] if path.is_file() else _files_in(path))]
    if not files:
        raise ValueError(
            f"The folder of the {split!r} text must contain at least one file. "
            f"Received: {[str(path) for path in paths]}"
        )
    return TextLines(files)


def _part_numbers(names: Sequence[str]) -> list[int] | None:
    """Returns the numbers of the parts of a text by their file names; `None` for other names.

    Example:

    >>> _part_numbers(["train-00001-of-00002.txt", "train-00000-of-00002.txt"])
    [1, 0]
    >>> _part_numbers(["test_2016.txt", "test_2017.txt"]) is None
    True
    """
    if len(names) == 1:
        return [0]
    if len({re.sub(r"\d+", "#", name) for name in names}) > 1:
        return None
    columns = zip(*(re.findall(r"\d+", name) for name in names), strict=True)
    differing = [list(map(int, column)) for column in columns if len(set(column)) > 1]
    if len(differing) != 1:
        return None
    (numbers,) = differing
    first = min(numbers)
    is_counted = first < 2 and sorted(numbers) == list(range(first, first + len(names)))
    return numbers if is_counted else None


def _files_in(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")
    )
