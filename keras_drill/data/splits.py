"""The parts of a corpus, and how their files are called."""

import re
from collections.abc import Mapping

SPLITS = {
    "train": ("train", "training", "trn"),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test", "tst"),
}


def split_in_name(name: str) -> str | None:
    """The split that one of a name's words stands for; `None` where none does, or several do.

    Example:

    >>> split_in_name("wiki.valid"), split_in_name("dev-00001"), split_in_name("latest")
    ('valid', 'valid', None)
    """
    words = set(re.findall("[a-z]+", name.lower()))
    found = [split for split, aliases in SPLITS.items() if words & set(aliases)]
    return found[0] if len(found) == 1 else None


def check_splits(path: Mapping) -> None:
    """Refuses a mapping from splits that has no training text, or other keys."""
    if set(path) - set(SPLITS) or "train" not in path:
        raise ValueError(
            "`path` as a mapping must have the key 'train' and may have 'valid' and 'test'. "
            f"Received: path={dict(path)!r}"
        )
