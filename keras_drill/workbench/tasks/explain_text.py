"""Parts of the explanation of text preprocessing that is printed when training begins."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from keras_drill.data import (
    EncodedText,
    Lines,
    Lowercase,
    PreprocessedTokenizer,
    Tokenizer,
    UnicodeNormalization,
    WordTokenizer,
)

LINES_LOOKED_AT = 2000


def first_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Reads the beginning of a text, to detect the kind of text."""
    return list(itertools.islice(iter(lines), LINES_LOOKED_AT))


def describe_origins(splits: Mapping[str, Mapping[str, Lines]]) -> str:
    """Describes the source files of each split of a corpus, one split per line.

    Args:
        splits: The lines by split and column.

    Example:

    >>> from keras_drill.data import TextLines
    >>> text = getfixture("tmp_path") / "train.txt"
    >>> _ = text.write_text("one line\\n")
    >>> print(describe_origins({"train": {"text": TextLines(text)}}))
    train: .../train.txt
    """
    return "\n".join(
        f"{split}: {' and '.join(dict.fromkeys(lines.origin for lines in columns.values()))}"
        for split, columns in splits.items()
    )


def changes_of(tokenizer: Tokenizer) -> list[str]:
    """Describes how a tokenizer and its preprocessing change the characters of a text.

    Example:

    >>> changes_of(WordTokenizer())
    ['lower-cased', 'Unicode NFKC']
    """
    found = []
    if isinstance(tokenizer, PreprocessedTokenizer):
        for step in tokenizer.preprocessing:
            if isinstance(step, Lowercase):
                found.append("lower-cased")
            if isinstance(step, UnicodeNormalization):
                found.append(f"Unicode {step.form}")
        return found + changes_of(tokenizer.tokenizer)
    if getattr(tokenizer, "lowercase", False):
        found.append("lower-cased")
    if isinstance(tokenizer, WordTokenizer) and tokenizer.normalization is not None:
        found.append(f"Unicode {tokenizer.normalization}")
    return found


def share_of(ids: np.ndarray, chosen: int, ends: int) -> float:
    """Returns the share of the id `chosen` among the ids of a text other than `ends`."""
    words = np.asarray(ids)[np.asarray(ids) != ends]
    return float(np.mean(words == chosen)) if len(words) else 0.0


def percent(share: float) -> str:
    """Formats a share as a percentage.

    >>> percent(0.0213), percent(0.0)
    ('2.1 %', '0.0 %')
    """
    return f"{100 * share:.1f} %"


def median_length(text: EncodedText | Sequence[int] | np.ndarray) -> int:
    """Returns the median number of words of non-empty lines.

    Args:
        text: An encoded text, or the lengths of lines, which include an end token.
    """
    lengths = np.asarray(text.line_lengths if isinstance(text, EncodedText) else text) - 1
    lengths = lengths[lengths > 0]
    return round(float(np.median(lengths))) if len(lengths) else 0


def loses_indentation(lines: Sequence[bytes]) -> bool:
    """Whether indentation is meaningful in a text, as in code: many but not all lines have it."""
    texts = [line for line in lines if line.strip()]
    indented = sum(line[:1] in (b" ", b"\t") for line in texts)
    return len(texts) >= 20 and 0.2 * len(texts) < indented < len(texts)
