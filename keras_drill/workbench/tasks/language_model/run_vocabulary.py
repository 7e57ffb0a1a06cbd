"""The vocabulary of a language model run."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_drill.data import Tokenizer, Vocabulary
from keras_drill.workbench.tasks.describe_words import load_descriptions, save_descriptions

_VOCABULARY = "vocabulary.txt"


@dataclasses.dataclass(frozen=True)
class LanguageModelVocabulary:
    """Tokenizer and vocabulary of a language model run.

    Args:
        tokenizer: Tokenizer that splits text into words.
        vocabulary: Vocabulary that maps words to ids.
        descriptions: Descriptions of the words, `[V, ...]`, for `head.kind = "described"`; else
            `None`.
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    descriptions: np.ndarray | None = dataclasses.field(default=None, compare=False)

    @property
    def tokens(self) -> Sequence[str]:
        return self.vocabulary.tokens

    @property
    def counts(self) -> Sequence[int] | None:
        return self.vocabulary.counts

    @property
    def special_ids(self) -> Sequence[int]:
        return (self.vocabulary.unknown_id, self.vocabulary.end_id)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256("\n".join(self.vocabulary.tokens).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        self.vocabulary.save(folder / _VOCABULARY)
        save_descriptions(folder, self.descriptions)

    @classmethod
    def load(cls, folder: Path, tokenizer: Tokenizer) -> "LanguageModelVocabulary":
        """Loads the files that `save` wrote."""
        vocabulary = Vocabulary.load(folder / _VOCABULARY)
        return cls(tokenizer, vocabulary, load_descriptions(folder, vocabulary.tokens))
