import itertools
import os
from collections.abc import Iterator, Sequence

import numpy as np

from keras_drill.data.checks import check_is, check_texts
from keras_drill.data.text_lines import TextLines


def read_word_vectors(
    path: str | os.PathLike, words: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Reads the vectors of given words from a text file of word2vec, fastText or GloVe.

    Each line has a word and its vector, separated by spaces. A first line with the numbers of words
    and columns is skipped. Vectors of words that are not in `words` are ignored. If a word occurs
    several times, its first vector is used. The vectors can be the `descriptions` of a
    `keras_drill.DescriptionLabelEncoder`.

    Args:
        path: The file, which may be gzipped.
        words: List of the V words whose vectors are needed, in the spelling of the file.

    Returns:
        A pair: the vectors `[V, f]`, float32, with zeros for missing words; and a mask `[V]`, bool,
        true for words that the file contains. f is the width of the file's vectors.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line has fewer numbers than the first vector, the vector of a word in `words`
            is not finite in float32, or the file has no vectors.

    Example:

    >>> from keras_drill.data import read_word_vectors
    >>> path = getfixture("tmp_path") / "vectors.txt"
    >>> _ = path.write_text("2 3\\ncat 1 0 0.5\\nrain 0 1 0\\n")
    >>> vectors, known = read_word_vectors(path, ["<unk>", "rain", "cat"])
    >>> vectors.tolist(), known.tolist()
    ([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.5]], [False, True, True])
    """
    check_texts("words", words)
    places: dict[bytes, list[int]] = {}
    for place, word in enumerate(words):
        check_is("words", word, str, "strings")
        places.setdefault(word.encode("utf-8"), []).append(place)
    lines = _numbered_vectors(path)
    first = next(lines, (0, b""))
    width = len(first[1].split()) - 1
    if width < 1:
        raise ValueError(
            "`path` must contain word vectors: lines with a word and its numbers. "
            f"Received: {os.fspath(path)!r}"
        )
    vectors = np.zeros((len(words), width), "float32")
    known = np.zeros(len(words), bool)
    for number, line in itertools.chain([first], lines):  # fast, for files of gigabytes
        found, *values = line.rsplit(None, width)  # a word may have blanks
        if len(values) != width:
            raise ValueError(
                f"Each line of `path` must have a word and {width} numbers, as the first vector "
                f"has. Received: {os.fspath(path)!r}, line {number}, with {len(values)} numbers"
            )
        wanted = places.pop(found, [])
        if wanted:
            vectors[wanted] = _numbers(values, path, number)
            known[wanted] = True
    return vectors, known


def _numbered_vectors(path: str | os.PathLike) -> Iterator[tuple[int, bytes]]:
    """Yields the lines with vectors, and their line numbers."""
    for number, line in enumerate(TextLines(path), start=1):
        is_header = number == 1 and len(line.split()) == 2 and line.replace(b" ", b"").isdigit()
        if line.strip() and not is_header:
            yield number, line


def _numbers(values: Sequence[bytes], path: str | os.PathLike, number: int) -> np.ndarray:
    try:
        vector = np.array([float(value) for value in values])
    except ValueError:
        vector = np.array([np.nan])
    if not (np.abs(vector) <= np.finfo("float32").max).all():
        shown = b" ".join(values[:3]).decode("utf-8", "replace")
        raise ValueError(
            "Each line of `path` must have a word and finite numbers. "
            f"Received: {os.fspath(path)!r}, line {number}, with the numbers {shown} ..."
        )
    return vector
