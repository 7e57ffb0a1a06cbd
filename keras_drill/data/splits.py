"""The splits of a corpus, and the names of their files."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

SPLITS = {
    "train": ("train", "training", "trn"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "tst"),
}


def split_in_name(name: str) -> str | None:
    """Returns the split that a file name contains as a word; `None` if there is not exactly one.

    Example:

    >>> split_in_name("wiki.valid"), split_in_name("dev-00001"), split_in_name("latest")
    ('valid', 'valid', None)
    """
    words = set(re.findall("[a-z]+", name.lower()))
    found = [split for split, aliases in SPLITS.items() if words & set(aliases)]
    return found[0] if len(found) == 1 else None


def check_splits(path: Mapping, needs_train: bool) -> None:
    """Raises `ValueError` if a mapping from splits has other keys or lacks required ones."""
    if set(path) - set(SPLITS) or ("train" not in path if needs_train else not path):
        allowed = (
            "the key 'train' and may have 'valid' and 'test'"
            if needs_train
            else "one or more of the keys 'train', 'valid' and 'test'"
        )
        raise ValueError(
            f"If `path` is a mapping, it must have {allowed}, and no other keys. "
            f"Received: path={dict(path)!r}"
        )


def name_of_files(files: Sequence[str | os.PathLike]) -> str:
    """Returns a name for a text that is not a split, from its file or files.

    Example:

    >>> name_of_files(["news/today.de", "news/today.en"])
    'today.de + today.en'
    """
    return " + ".join(Path(file).name for file in files)
