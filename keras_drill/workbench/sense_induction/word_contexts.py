"""Where words stand in a text, and what stands around them."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from keras_drill.models.text_encoder import WordContext

_WORD = re.compile(r"\w+")
_FEWEST_LETTERS = 4  # of a word that is chosen for its frequency: most shorter ones are grammar


def frequent_words(lines: Iterable[str], number: int, without: Iterable[str] = ()) -> list[str]:
    """The most frequent words of a text, in lower case, of at least four letters and no digits.

    Args:
        lines: The text.
        number: How many words, at most.
        without: Words that are left out.

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
    """The contexts of words, upper and lower case being the same; a random part of many.

    Args:
        lines: The text.
        words: The words, without white space or punctuation in them.
        most: Most contexts of a word.
        seed: Of the choice among more, each of which is as likely to be taken.

    Returns:
        The contexts of each word, in the order of the text.

    Raises:
        ValueError: A word is none, or stands there twice.

    Example:

    >>> find_contexts(["On the Bank. A bank!"], ["bank"], 9)["bank"]
    [WordContext(before='On the ', word='Bank', after='. A bank!'),
     WordContext(before='On the Bank. A ', word='bank', after='!')]
    """
    numbers = {word.lower(): place for place, word in enumerate(words)}
    wrong = [word for word in words if not _WORD.fullmatch(word)]
    if wrong or len(numbers) < len(words):
        raise ValueError(
            "`words` must be different words, without white space or punctuation in them. "
            f"Received: {wrong or list(words)}"
        )
    kept: list[list[tuple[int, WordContext]]] = [[] for _ in words]
    seen = [0] * len(words)
    draws = [random.Random(f"{seed} {word}") for word in numbers]  # whatever other words there are
    for line in lines:
        for match in _WORD.finditer(line):
            place = numbers.get(match[0].lower())
            if place is None:
                continue
            seen[place] += 1
            context = WordContext(line[: match.start()], match[0], line[match.end() :])
            if len(kept[place]) < most:
                kept[place].append((seen[place], context))
            elif (other := draws[place].randrange(seen[place])) < most:  # a reservoir
                kept[place][other] = (seen[place], context)
    return {
        word: [context for _, context in sorted(some)]
        for word, some in zip(words, kept, strict=True)
    }
