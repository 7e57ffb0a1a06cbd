"""Spelling help in error messages."""

import difflib
from collections.abc import Iterable


def suggest(name: str, known: Iterable[str]) -> str:
    """What to put after an unknown name: the nearest known one, or all of them.

    Example:

    >>> suggest("head.dept", ["head.depth", "head.kind"])
    "; did you mean 'head.depth'?"
    >>> suggest("colour", ["data", "head"])
    '; known: data, head'
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if not close:  # "depth" for "head.depth"
        close = [other for other in known if other.rpartition(".")[2] == name.rpartition(".")[2]]
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(known)}"
