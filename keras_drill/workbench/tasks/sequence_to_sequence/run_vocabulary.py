"""The vocabulary of an encoder–decoder run: a tokenizer and a vocabulary for each side."""

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
    PreprocessedLines,
    PreprocessedTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    Vocabulary,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)
from keras_drill.data.atomic import replace_file
from keras_drill.data.lines import JoinedLines
from keras_drill.data.read_json import read_json
from keras_drill.data.tokenizer import VocabularySizeError
from keras_drill.workbench.tasks.describe_words import load_descriptions, save_descriptions
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import SPECIAL, PairsConfig
from keras_drill.workbench.tasks.sequence_to_sequence.preprocessing import make_steps, with_steps

_TOKENIZERS = {
    "bpe": SentencePieceTokenizer,
    "unigram": SentencePieceTokenizer,
    "wordpiece": WordPieceTokenizer,
    "words": WordTokenizer,
    "whitespace": WhitespaceTokenizer,
}


@dataclasses.dataclass(frozen=True)
class SideVocabulary:
    """Tokenizer and vocabulary of one side of the pairs, the sources or the targets.

    Args:
        tokenizer: Tokenizer that splits text into words or pieces.
        vocabulary: Vocabulary that maps words or pieces to ids.
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary

    def encode(self, lines: Lines) -> EncodedText:
        """Encodes lines to ids, with an end token after each line."""
        return EncodedText.encode(lines, self.tokenizer, self.vocabulary)

    @property
    def is_consistent(self) -> bool:
        """Whether the vocabulary consists of the tokenizer's subwords; true without subwords."""
        tokenizer = self.tokenizer
        if isinstance(tokenizer, PreprocessedTokenizer):
            tokenizer = tokenizer.tokenizer
        if not isinstance(tokenizer, SentencePieceTokenizer | WordPieceTokenizer):
            return True
        return tuple(self.vocabulary.tokens) == (*SPECIAL, *tokenizer.pieces())

    @property
    def fingerprint(self) -> str:
        """Digest of tokenizer and vocabulary."""
        told = json.dumps([self.tokenizer.get_config(), self.vocabulary.tokens])
        return hashlib.sha256(told.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class SequenceToSequenceVocabulary:
    """Tokenizers and vocabularies of sources and targets.

    Args:
        source: Tokenizer and vocabulary of the sources.
        target: Tokenizer and vocabulary of the targets; the same object if both sides share them.
        descriptions: Descriptions of the target words, `[V, ...]`, for
            `head.kind = "described"`; else `None`.
    """

    source: SideVocabulary
    target: SideVocabulary
    descriptions: np.ndarray | None = dataclasses.field(default=None, compare=False)

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
        """Writes `tokenizer.json` and `vocabulary.txt`.

        If the sources have their own tokenizer or vocabulary, writes their files too.
        """
        _save_tokenizer(self.target.tokenizer, folder / "tokenizer.json")
        self.target.vocabulary.save(folder / "vocabulary.txt")
        if self.source.tokenizer is not self.target.tokenizer:
            _save_tokenizer(self.source.tokenizer, folder / "source-tokenizer.json")
        if self.source.vocabulary is not self.target.vocabulary:
            self.source.vocabulary.save(folder / "source-vocabulary.txt")
        save_descriptions(folder, self.descriptions)

    @classmethod
    def load(cls, folder: Path, options: PairsConfig) -> "SequenceToSequenceVocabulary":
        """Loads the files that `save` wrote."""
        source = target = SideVocabulary(
            _load_tokenizer(folder / "tokenizer.json", options.tokenizer),
            Vocabulary.load(folder / "vocabulary.txt"),
        )
        if not options.shares_tokenizer:
            tokenizer = _load_tokenizer(folder / "source-tokenizer.json", options.tokenizer)
            source = SideVocabulary(tokenizer, target.vocabulary)
        if not options.shared_vocabulary:
            vocabulary = Vocabulary.load(folder / "source-vocabulary.txt")
            source = SideVocabulary(source.tokenizer, vocabulary)
        for side, name in ((target, "tokenizer.json"), (source, "source-tokenizer.json")):
            if not side.is_consistent:
                raise RunError(
                    f"{folder / name} is not the tokenizer that the run was trained with, since "
                    "its subwords differ from the vocabulary; restore the original file"
                )
        return cls(source, target, load_descriptions(folder, target.vocabulary.tokens))

    @classmethod
    def make(cls, train: ParallelText, options: PairsConfig) -> "SequenceToSequenceVocabulary":
        """Learns tokenizers and vocabularies from a training text."""
        steps = [make_steps(options, language) for language in options.languages]
        texts: list[Lines] = [train.source, train.target]
        texts = [
            PreprocessedLines(text, own) if own else text
            for text, own in zip(texts, steps, strict=True)
        ]
        if options.shared_vocabulary:
            learned = _make_side(texts, options, options.tokenizer_model)
            target = _counted(learned, texts[1])
            sides = [
                SideVocabulary(with_steps(own, target.tokenizer), target.vocabulary)
                for own in steps
            ]
            return cls(sides[1] if options.shares_tokenizer else sides[0], sides[1])
        model = options.tokenizer_model
        models = (options.source_tokenizer_model or model, model)
        source, target = (
            _make_side([text], options, model) for text, model in zip(texts, models, strict=True)
        )
        target = _counted(target, texts[1])
        source, target = (
            SideVocabulary(with_steps(own, side.tokenizer), side.vocabulary)
            for own, side in zip(steps, (source, target), strict=True)
        )
        return cls(source, target)


def _save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    replace_file(path, json.dumps(tokenizer.get_config(), indent=2) + "\n")


def _load_tokenizer(path: Path, kind: str) -> Tokenizer:
    try:
        config = read_json(path)
        if "preprocessing" in config:
            return PreprocessedTokenizer.from_config(config)
        return _TOKENIZERS[kind](**config)
    # Tokenizers and Keras may raise any error for a configuration that they did not write.
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise RunError(f"{path} is damaged ({error}); restore the original file") from error


def _make_side(texts: list[Lines], options: PairsConfig, model: str) -> SideVocabulary:
    """Learns a tokenizer and a vocabulary from texts.

    Args:
        texts: The texts.
        options: The options.
        model: File of the tokenizer; empty to learn it.
    """
    symbols = options.read_symbols
    pieces: SentencePieceTokenizer | WordPieceTokenizer
    if model and options.tokenizer == "wordpiece":
        pieces = WordPieceTokenizer.load(model, symbols)
    elif model:
        pieces = SentencePieceTokenizer.load(model)
    elif options.tokenizer == "wordpiece" or options.learns_sentence_pieces:
        try:
            pieces = _learn_pieces(texts, options, symbols)
        except VocabularySizeError as error:
            raise ConfigError(
                f"option data.vocabulary_size must be at least {error.least + len(SPECIAL)} for "
                "this text, because all its characters are in the vocabulary; a lower "
                "data.character_coverage drops rare characters. "
                f"Received: {options.vocabulary_size}"
            ) from None
    else:
        return _count_words(texts, options)
    return SideVocabulary(pieces, Vocabulary([*SPECIAL, *pieces.pieces()]))


def _learn_pieces(
    texts: list[Lines], options: PairsConfig, symbols: tuple[str, ...]
) -> SentencePieceTokenizer | WordPieceTokenizer:
    lines, size = itertools.chain(*texts), options.vocabulary_size - len(SPECIAL)
    coverage = options.character_coverage
    if options.tokenizer == "wordpiece":
        return WordPieceTokenizer.train(lines, size, symbols, coverage)
    return SentencePieceTokenizer.train(
        lines,
        size,
        kind=options.tokenizer,
        character_coverage=coverage,
        symbols=symbols,
    )


def _count_words(texts: list[Lines], options: PairsConfig) -> SideVocabulary:
    # The preprocessing steps lower-case and normalize, so the tokenizer does not.
    words: Tokenizer = WordTokenizer(lowercase=False, normalization=None)
    if options.tokenizer == "whitespace":
        words = WhitespaceTokenizer(tidy=False)
    vocabulary = Vocabulary.build(
        JoinedLines(texts), words, max_size=options.vocabulary_size, special_tokens=SPECIAL
    )
    return SideVocabulary(words, vocabulary)


def _counted(side: SideVocabulary, text: Lines) -> SideVocabulary:
    """Returns `side` with the counts of its words in a text."""
    tokens = side.vocabulary.tokens
    counts = np.bincount(side.encode(text).ids, minlength=len(tokens))
    return SideVocabulary(side.tokenizer, Vocabulary(tokens, counts.tolist()))
