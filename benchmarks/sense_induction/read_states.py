"""Computes the encoder's states of all contexts of the study, once."""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.sense_induction.data import (
    Word,
    make_up_words,
    read_lines,
    read_nouns,
    read_other_words,
)
from keras_drill.workbench.sense_induction import TextEncoder, WordContext, encode_contexts

OTHER_WORDS, OTHER_CONTEXTS = 60, 24


class States:
    """Contexts with their states.

    Attributes:
        encoder: The encoder.
        nouns: The `Word`s with gold senses by people.
        words: They, and the made-up ones.
        fingerprint: Of the encoder and of all contexts.
        other: Masked states `[N, 2, d]` of words that are to be told from them, by word.
    """

    def __init__(self, arguments: argparse.Namespace):
        self.encoder = TextEncoder.from_preset(arguments.encoder)
        self._cache = arguments.folder / "states"
        self._read: dict[tuple[str, bool], np.ndarray] = {}
        lines = read_lines(arguments.wikitext / "train.txt")
        self.nouns = read_nouns(arguments.data_dir)
        names = [noun.name for noun in self.nouns]
        made_up = make_up_words(lines, self.encoder.knows, names)
        self.words: list[Word] = [*self.nouns, *made_up]
        without = names + [part for word in made_up for part in word.name.split("+")]
        others = read_other_words(lines, self.encoder.knows, OTHER_WORDS, OTHER_CONTEXTS, without)
        self.other = {word: self.encode(word, some) for word, some in others.items()}
        read = [
            self.encoder.fingerprint,
            [[word.name, word.contexts] for word in self.words],
            others,
        ]
        self.fingerprint = hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]

    def of(self, word: Word, read: str = "masked") -> np.ndarray:
        """States `[N, 2, d]` of a word's contexts."""
        key = word.name, read == "masked"
        if key not in self._read:
            self._read[key] = self.encode(word.name, word.contexts, read)
        return self._read[key]

    def encode(
        self, name: str, contexts: Sequence[WordContext], read: str = "masked"
    ) -> np.ndarray:
        """States of contexts; masked, or as they are."""
        start = time.time()
        states = encode_contexts(self.encoder, contexts, read == "masked", self._cache)
        if time.time() - start > 5:
            print(f"{name}: {len(contexts)} contexts read", file=sys.stderr, flush=True)
        return states
