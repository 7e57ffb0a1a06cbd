"""Finds the train, valid and test pairs of a corpus of sources and targets."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_drill.data.parallel_text import ParallelText, cut_by_target, read_pairs
from keras_drill.data.splits import SPLITS, check_splits, name_of_files, split_in_name
from keras_drill.data.tfds_pairs import PREFIX, tfds_pairs


class ParallelCorpus:
    """Finds the train, valid and test pairs of a corpus of sources and targets, as in translation.

    `path` can be one of these:

    - A folder with two text files per split, whose names end in the languages `source` and
      `target`, for example `train.de` and `train.en`. The names contain the split as a word:
      "train", "valid" (or "val", "dev", "validation") or "test", as `test_2016.de` does. Files may
      be gzipped (`.gz`). Several files for a split and a language raise a `ValueError`.
    - A folder with one file of two columns per split. The names contain the split as above, and end
      in `.tsv`, such as `train.tsv`. The columns are source and target, separated by a tab. Further
      columns are ignored, but all lines must have the same number of columns. These files are used
      if `source` and `target` are `None`, or if the folder has no files of these languages.
    - One file of two columns, or a pair of text files `(source, target)`. About 90 % of the pairs
      are for training, 5 % for validation and 5 % for testing. A hash of the target determines the
      split, so that no target is in two splits.
    - `"tfds:"` and the name of a data set of tensorflow-datasets, such as
      `"tfds:wmt14_translate/de-en"`. The data set is downloaded and prepared if necessary, in the
      folder that the environment variable `TFDS_DATA_DIR` names. A data set with only training
      pairs is split like a file.
    - A mapping `{"train": ..., "valid": ..., "test": ...}` from splits to files of two columns or
      pairs of text files.

    By default, the corpus must have training pairs. To evaluate pairs as a whole, use
    `split=False`. A file or a pair of files is then not split: `splits` has one text, whose key
    consists of the names of the files, such as "today.de + today.en". With `split=False`, a folder,
    a data set or a mapping need not have training pairs.

    Empty lines are kept. `TextLines` documents which characters end a line.

    Args:
        path: Folder, file, pair of files, mapping, or name of a data set.
        source: Language of the sources, such as "de", the suffix of their file names. Required for
            folders with two files per split. For a data set, the name of a feature; if `source` and
            `target` are `None`, the supervised keys of the data set. Ignored for files and
            mappings.
        target: Language of the targets, like `source`.
        split: Whether to split pairs that have no splits, and to raise an error if there are no
            training pairs.

    Attributes:
        splits: Mapping from the names of the existing splits ("train", "valid", "test") to
            `ParallelText`. See above for files with `split=False`.

    Raises:
        FileNotFoundError: There is nothing at `path`, or the folder has no (training) pairs or
            lacks the file of one language.
        ValueError: The two sides have different numbers of lines, a line has fewer than two columns
            or not as many as the other lines, a file is not UTF-8 text, a folder has several files
            for a split and a language, or a data set does not have the language.
        ImportError: tensorflow-datasets is required and not installed.

    Example:

    >>> from keras_drill.data import ParallelCorpus
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
        split: bool = True,
    ):
        self.path = path
        self.source = source
        self.target = target
        if isinstance(path, Mapping):
            check_splits(path, needs_train=split)
            self.splits = {name: read_pairs(path[name]) for name in SPLITS if name in path}
        elif isinstance(path, str) and path.startswith(PREFIX):
            self.splits = tfds_pairs(path.removeprefix(PREFIX), source, target, split)
        elif isinstance(path, str | os.PathLike) and Path(path).is_dir():
            self.splits = self._folder_splits(Path(path), needs_train=split)
        elif split:
            self.splits = cut_by_target(read_pairs(path))
        else:
            files = [path] if isinstance(path, str | os.PathLike) else list(path)
            self.splits = {name_of_files(files): read_pairs(files)}

    def _folder_splits(self, folder: Path, needs_train: bool) -> dict[str, ParallelText]:
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
        found = _files_by_split(folder, suffixes)
        if not found:  # columns have no language
            found = _files_by_split(folder, ("tsv",))
            suffixes = ("tsv",) if found else suffixes
        if "train" not in found if needs_train else not found:
            what = "training" if needs_train else "train, valid or test"
            expected = _names("train" if needs_train else "test", suffixes)
            instead = "" if needs_train else ", or the paths of the text's own files"
            raise FileNotFoundError(
                f"Found no {what} pairs in the folder: expected {expected}{instead}. "
                "Entries of the folder (at most ten): "
                f"{sorted(path.name for path in folder.iterdir())[:10]}. "
                f"Received: path={str(folder)!r}"
            )
        for name, files in found.items():
            missing = [suffix for suffix in suffixes if suffix not in files]
            if missing:
                raise FileNotFoundError(
                    f"The folder must contain {_names(name, missing)}, the other side of "
                    f"{[path.name for path in files.values()]}. Received: path={str(folder)!r}"
                )
        return {
            name: read_pairs([found[name][suffix] for suffix in suffixes])
            for name in SPLITS
            if name in found
        }


def _files_by_split(folder: Path, suffixes: Sequence[str]) -> dict[str, dict[str, Path]]:
    """Finds the files of a folder with given suffixes, by split and suffix."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        stem, _, suffix = path.name.removesuffix(".gz").rpartition(".")
        split = split_in_name(stem)
        if suffix not in suffixes or split is None or path.name.startswith("."):
            continue
        if suffix in found.setdefault(split, {}):
            raise ValueError(
                f"The folder has several files that may be the {split!r} text. Give a mapping "
                "{'train': ..., 'valid': ..., 'test': ...} of files as `path`, or the two files "
                "of one text, source and target. "
                f"Received: {str(folder)!r} with {found[split][suffix].name} and {path.name}"
            )
        found[split][suffix] = path
    return found


def _names(split: str, suffixes) -> str:
    return " and ".join(f"'{split}.{suffix}'" for suffix in suffixes)
