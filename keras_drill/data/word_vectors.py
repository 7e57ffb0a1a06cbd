import itertools
import os
from collections.abc import Iterator, Sequence

import numpy as np

from keras_drill.data.checks import check_is, check_texts
from keras_drill.data.text_lines import TextLines


def read_word_vectors(
    path: str | os.PathLike, words: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of words, from a file in the text format of word2vec, fastText and GloVe.

    A line is a word and its vector, with blanks between; a first line of two whole numbers, of
    words and of columns, is skipped. Vectors of other words are not looked at. Of a word that is
    there more than once the first vector counts.

    Args:
        path: The file, which may be gzipped.
        words: V words, as they are written in the file.

    Returns:
        `[V, f]` float32, zeros for words that the file does not have; and `[V]` bool, which ones it
        has.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A vector is of another width than the first, or no finite float32.

    Example:

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
        raise ValueError(f"`path` must have vectors. Received: {os.fspath(path)!r}")
    vectors = np.zeros((len(words), width), "float32")
    known = np.zeros(len(words), bool)
    for number, line in itertools.chain([first], lines):  # files of gigabytes
        found, *values = line.rsplit(None, width)  # a word may have blanks
        if len(values) != width:
            raise ValueError(
                f"`path` must have vectors of one width, {width} as in its first. "
                f"Received: {os.fspath(path)!r}, line {number}, with {len(values)}"
            )
        wanted = places.pop(found, [])
        if wanted:
            vectors[wanted] = _numbers(values, path, number)
            known[wanted] = True
    return vectors, known


def _numbered_vectors(path: str | os.PathLike) -> Iterator[tuple[int, bytes]]:
    """The lines that are vectors, and their numbers."""
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
            f"`path` must have words and finite numbers. Received: {os.fspath(path)!r}, "
            f"line {number}, with {shown} ..."
        )
    return vector
