"""Finds the contexts of words in a text, and the most frequent words of a text."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from keras_drill.models.text_encoder import WordContext

_WORD = re.compile(r"\w+")
_FEWEST_LETTERS = 4  # minimum length of frequent words: most shorter ones are function words


def frequent_words(lines: Iterable[str], number: int, without: Iterable[str] = ()) -> list[str]:
    """Returns the most frequent words of a text, in lower case.

    Words with fewer than four letters or with other characters than letters are ignored.

    Args:
        lines: The lines of the text.
        number: Maximum number of words.
        without: Words to ignore.

    Example:

    >>> frequent_words(["The banks of the river.", "River banks, river views"], 2, ["views"])
    ['river', 'banks']
    """
    counts = Counter(word for line in lines for word in _WORD.findall(line.lower()))
    left_out = {word.lower() for word in without}
    chosen = [
        word
        for word in counts
        if len(word) >= _FEWEST_LETTERS and word.isalpha() and word not in left_out
    ]
    return sorted(chosen, key=lambda word: (-counts[word], word))[:number]


def find_contexts(
    lines: Iterable[str], words: Sequence[str], most: int, seed: int = 0
) -> dict[str, list[WordContext]]:
    """Finds the contexts of words in a text, regardless of case.

    A context is the whole line of an occurrence. If a word has more than `most` contexts, a uniform
    random sample of them is returned.

    Args:
        lines: The lines of the text.
        words: The words, without white space or punctuation.
        most: Maximum number of contexts of a word.
        seed: Seed of the random sample.

    Returns:
        The contexts of each word, in the order of the text.

    Raises:
        ValueError: An item of `words` is not a word, or occurs twice.

    Example:

    >>> find_contexts(["On the Bank. A bank!"], ["bank"], 9)["bank"]
    [WordContext(before='On the ', word='Bank', after='. A bank!'),
     WordContext(before='On the Bank. A ', word='bank', after='!')]
    """
    numbers = {word.lower(): place for place, word in enumerate(words)}
    wrong = [word for word in words if not _WORD.fullmatch(word)]
    if wrong or len(numbers) < len(words):
        raise ValueError(
            "`words` must be a list of different words without white space and punctuation. "
            f"Received: words={wrong or list(words)}"
        )
    kept: list[list[tuple[int, WordContext]]] = [[] for _ in words]
    seen = [0] * len(words)
    # One generator per word, so that a word's sample does not depend on the other words.
    draws = [random.Random(f"{seed} {word}") for word in numbers]
    for line in lines:
        for match in _WORD.finditer(line):
            place = numbers.get(match[0].lower())
            if place is None:
                continue
            seen[place] += 1
            context = WordContext(line[: match.start()], match[0], line[match.end() :])
            if len(kept[place]) < most:
                kept[place].append((seen[place], context))
            elif (other := draws[place].randrange(seen[place])) < most:  # reservoir sampling
                kept[place][other] = (seen[place], context)
    return {
        word: [context for _, context in sorted(some)]
        for word, some in zip(words, kept, strict=True)
    }
