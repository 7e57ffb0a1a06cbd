"""Reads the data: nouns with gold senses, made-up words, other words, pairs of occurrences.

Methods were developed on the 13 nouns of `CHOSEN`. Other nouns of the same set, and the made-up
words with odd numbers, are held out: they did not influence any choice.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

from keras_drill.workbench.sense_induction import WordContext, find_contexts, frequent_words

CHOSEN = [
    "apple",
    "arm",
    "bank",
    "bow",
    "chair",
    "crane",
    "deck",
    "digit",
    "hood",
    "java",
    "mole",
    "pound",
    "trunk",
]
MOST_TRAINING = 1500  # sentences of a noun
MADE_UP = 14
MADE_UP_POOL = 96  # words that they are made of
MADE_UP_SIZES = (150, 75, 40)  # contexts of the first, second, third word in a made-up one
FREQUENT_BEYOND = 400  # the words that others are taken from begin at this rank


@dataclasses.dataclass(frozen=True)
class Word:
    """A word whose occurrences have gold senses.

    Args:
        name: The word.
        kind: "chosen", "held back", "made up" or "made up, held back".
        contexts: Training contexts, then test contexts.
        gold: Sense of each context.
        training: How many of them are for training.
    """

    name: str
    kind: str
    contexts: tuple[WordContext, ...]
    gold: np.ndarray
    training: int


def read_nouns(folder: Path) -> list[Word]:
    """The nouns of CoarseWSD-20 in a folder; those whose senses cannot be told apart are named."""
    nouns = []
    for name in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        parts = [_read_split(folder / name, split) for split in ("train", "test")]
        contexts, gold = parts[0]
        kept = np.sort(np.random.default_rng(0).permutation(len(gold))[:MOST_TRAINING])
        contexts = [contexts[place] for place in kept] + parts[1][0]
        gold = np.concatenate([gold[kept], parts[1][1]])
        one_sense = [
            part
            for part, some in (("training", gold[: len(kept)]), ("test", gold[len(kept) :]))
            if len(set(some)) < 2
        ]
        if one_sense:
            print(
                f"{name} is skipped: its {' and '.join(one_sense)} contexts have one gold sense, "
                "so that no method can be measured on them",
                file=sys.stderr,
                flush=True,
            )
            continue
        kind = "chosen" if name in CHOSEN else "held back"
        nouns.append(Word(name, kind, tuple(contexts), gold, len(kept)))
    if not nouns:
        raise ValueError(
            "Expected a folder for each noun, at least one of them with two gold senses in its "
            f"training and its test contexts. Received: {str(folder)!r}"
        )
    return nouns


def _read_split(folder: Path, split: str) -> tuple[list[WordContext], np.ndarray]:
    lines = (folder / f"{split}.data.txt").read_text(encoding="utf-8").splitlines()
    gold = (folder / f"{split}.gold.txt").read_text(encoding="utf-8").split()
    contexts = [
        at(sentence.split(), int(place))
        for place, sentence in (line.split("\t", 1) for line in lines)
    ]
    return contexts, np.array(list(map(int, gold)))


def at(words: list[str], place: int) -> WordContext:
    """The context of one of the words of a sentence."""
    return WordContext(" ".join(words[:place]), words[place], " ".join(words[place + 1 :]))


def read_lines(path: Path) -> list[str]:
    """The lines of WikiText-2, without its marks."""
    text = path.read_text(encoding="utf-8")
    for mark, replacement in ((" @-@ ", "-"), (" @,@ ", ","), (" @.@ ", "."), ("<unk> ", "")):
        text = text.replace(mark, replacement)
    return [line for line in text.splitlines() if line.strip() and not line.startswith(" =")]


def read_other_words(
    lines: list[str], knows, number: int, most: int, without: list[str]
) -> dict[str, list[WordContext]]:
    """Contexts of frequent words that the senses of the nouns have to be told from."""
    words = [word for word in frequent_words(lines, 3 * number, without) if knows(word)]
    return find_contexts(lines, words[:number], most)


def make_up_words(lines: list[str], knows, without: list[str]) -> list[Word]:
    """Words made of two or three, one sense each: which one it was is the gold sense.

    Every second one is held back. The share of the last fifth of the contexts is for testing.
    """
    words = [word for word in frequent_words(lines, 2500, without) if knows(word)]
    words = words[FREQUENT_BEYOND : FREQUENT_BEYOND + MADE_UP_POOL]
    found = find_contexts(lines, words, MADE_UP_SIZES[0])
    rng = np.random.default_rng(0)
    rng.shuffle(words)
    made = []
    for number in range(min(MADE_UP, len(words) // 3)):
        parts = words[3 * number : 3 * number + 2 + number // 2 % 2]
        contexts = [found[part][:size] for part, size in zip(parts, MADE_UP_SIZES, strict=False)]
        gold = np.repeat(np.arange(len(parts)), [len(some) for some in contexts])
        order = rng.permutation(len(gold))
        flat = [context for some in contexts for context in some]
        kind = "made up, held back" if number % 2 else "made up"
        flat = tuple(flat[place] for place in order)
        made.append(Word("+".join(parts), kind, flat, gold[order], 2 * len(gold) // 3))
    return made


def read_pairs(folder: Path, split: str) -> tuple[list[tuple[WordContext, ...]], np.ndarray]:
    """Pairs of Word-in-Context, and whether their sense is the same."""
    lines = (folder / f"{split}.data.txt").read_text(encoding="utf-8").splitlines()
    gold = (folder / f"{split}.gold.txt").read_text(encoding="utf-8").split()
    pairs = []
    for line in lines:
        _, _, places, *sentences = line.split("\t")
        pairs.append(
            tuple(
                at(sentence.split(), int(place))
                for place, sentence in zip(places.split("-"), sentences, strict=True)
            )
        )
    return pairs, np.array([answer == "T" for answer in gold])
