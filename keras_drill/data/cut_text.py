"""Detects text that is already tokenized."""

from collections import Counter
from collections.abc import Iterable

_FEWEST = 5
# Traces of tokenizers, which do not occur in raw text.
_MARKS = frozenset(
    ("@-@", "@,@", "@.@", "<unk>", "<UNK>", "n't", "'s", "``", "''")
    + ("-LRB-", "-RRB-", "-lrb-", "-rrb-")
)
_POINTS = frozenset(".,。，")  # in French, other marks stand alone in raw text


def signs_of_cut_text(lines: Iterable[bytes]) -> tuple[str, ...]:
    """Finds signs that a text is already tokenized, the most frequent first. Empty for raw text.

    Commas and full stops are signs if they are much more often separate than after a word. Other
    signs are the marks of WikiText (`@-@`, headings between `=`) and of Penn Treebank (`<unk>`,
    `n't`).

    Args:
        lines: the lines of the text, or of its beginning, in UTF-8.

    Example:

    >>> signs_of_cut_text([b"Robert is an actor , and well @-@ known ."] * 9)
    ('" ,"', '"@-@"', '" ."')
    >>> signs_of_cut_text([b"Robert is an actor, and well-known."] * 9)
    ()
    """
    alone: Counter[str] = Counter()
    touching = 0
    for line in lines:
        words = line.decode("utf-8", errors="replace").split()
        alone.update(word for word in words if word in _MARKS or word in _POINTS)
        alone["= ="] += line.count(b"= =")
        touching += sum(len(word) > 1 and word[-1] in _POINTS for word in words)
    if sum(alone[point] for point in _POINTS) < 2 * touching + _FEWEST:
        for point in _POINTS:
            del alone[point]
    return tuple(
        f'" {sign}"' if sign in _POINTS else f'"{sign}"'
        for sign, count in alone.most_common()
        if count >= _FEWEST
    )
