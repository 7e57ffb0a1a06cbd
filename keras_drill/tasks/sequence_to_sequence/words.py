"""The words of an encoder–decoder: a tokenizer and a vocabulary for each side."""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_drill.data import (
    EncodedText,
    Lines,
    ParallelText,
    SentencePieceTokenizer,
    Tokenizer,
    Vocabulary,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)
from keras_drill.data.atomic import replace_file
from keras_drill.data.lines import JoinedLines
from keras_drill.tasks.errors import RunError
from keras_drill.tasks.sequence_to_sequence.config import PairsConfig

SPECIAL = ("<pad>", "<unk>", "<eos>", "<sos>")
_TOKENIZERS = {
    "bpe": SentencePieceTokenizer,
    "unigram": SentencePieceTokenizer,
    "wordpiece": WordPieceTokenizer,
    "words": WordTokenizer,
    "whitespace": WhitespaceTokenizer,
}


@dataclasses.dataclass(frozen=True)
class SideWords:
    """The words of one side.

    Args:
        tokenizer: Splits text into words or pieces.
        vocabulary: Gives their ids.
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary

    def encode(self, lines: Lines) -> EncodedText:
        """Ids of lines, each with its end token."""
        return EncodedText.encode(lines, self.tokenizer, self.vocabulary)

    @property
    def fingerprint(self) -> str:
        """Tells these words from others."""
        told = json.dumps([self.tokenizer.get_config(), self.vocabulary.tokens])
        return hashlib.sha256(told.encode()).hexdigest()

    def save(self, folder: Path, prefix: str) -> None:
        """Writes `<prefix>tokenizer.json` and `<prefix>vocabulary.txt`."""
        self.vocabulary.save(folder / f"{prefix}vocabulary.txt")
        config = json.dumps(self.tokenizer.get_config(), indent=2) + "\n"
        replace_file(folder / f"{prefix}tokenizer.json", config)

    @classmethod
    def load(cls, folder: Path, prefix: str, kind: str) -> "SideWords":
        """Reads what `save` wrote."""
        path = folder / f"{prefix}tokenizer.json"
        try:
            tokenizer = _TOKENIZERS[kind](**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise RunError(f"{path} is damaged ({error})") from error
        return cls(tokenizer, Vocabulary.load(folder / f"{prefix}vocabulary.txt"))


@dataclasses.dataclass(frozen=True)
class SequenceToSequenceWords:
    """The words of sources and of targets.

    Args:
        source: Those of the sources.
        target: Those of the targets; the same object where both sides share them.
    """

    source: SideWords
    target: SideWords

    @property
    def tokens(self) -> Sequence[str]:
        return self.target.vocabulary.tokens

    @property
    def counts(self) -> Sequence[int] | None:
        return self.target.vocabulary.counts

    @property
    def special_ids(self) -> Sequence[int]:
        return range(len(SPECIAL))

    @property
    def fingerprint(self) -> str:
        sides = {self.source.fingerprint: None, self.target.fingerprint: None}
        return hashlib.sha256(" ".join(sides).encode()).hexdigest()

    def save(self, folder: Path) -> None:
        self.target.save(folder, "")
        if self.source is not self.target:
            self.source.save(folder, "source-")

    @classmethod
    def load(cls, folder: Path, options: PairsConfig) -> "SequenceToSequenceWords":
        """Reads what `save` wrote."""
        target = SideWords.load(folder, "", options.tokenizer)
        if options.shared_vocabulary:
            return cls(target, target)
        return cls(SideWords.load(folder, "source-", options.tokenizer), target)

    @classmethod
    def make(cls, train: ParallelText, options: PairsConfig) -> "SequenceToSequenceWords":
        """Learns the words of a training text."""
        if options.shared_vocabulary:
            side = _learn([train.source, train.target], options)
            target = SideWords(side.tokenizer, _counted(side, train.target))
            return cls(target, target)
        source, target = (_learn([side], options) for side in (train.source, train.target))
        return cls(source, SideWords(target.tokenizer, _counted(target, train.target)))


def _learn(texts: list[Lines], options: PairsConfig) -> SideWords:
    size, lines = options.vocabulary_size - len(SPECIAL), itertools.chain(*texts)
    if options.tokenizer == "wordpiece":
        word_pieces = WordPieceTokenizer.train(lines, size, symbols=options.symbols)
        return SideWords(word_pieces, Vocabulary([*SPECIAL, *word_pieces.pieces()]))
    if options.tokenizer in ("bpe", "unigram"):
        pieces = SentencePieceTokenizer.train(
            lines,
            size,
            kind=options.tokenizer,
            lowercase=options.lowercase,
            symbols=options.symbols,
        )
        return SideWords(pieces, Vocabulary([*SPECIAL, *pieces.pieces()]))
    words = _TOKENIZERS[options.tokenizer]()
    vocabulary = Vocabulary.build(
        JoinedLines(texts), words, max_size=options.vocabulary_size, special_tokens=SPECIAL
    )
    return SideWords(words, vocabulary)


def _counted(side: SideWords, text: Lines) -> Vocabulary:
    """The vocabulary with the counts of its words in a text."""
    tokens = side.vocabulary.tokens
    counts = np.bincount(side.encode(text).ids, minlength=len(tokens))
    return Vocabulary(tokens, counts.tolist())
