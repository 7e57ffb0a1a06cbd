"""Options of pairs of texts: files, tokenizers, vocabularies and batches."""

import dataclasses
import re

from keras_drill.workbench.tasks.config.option import option
from keras_drill.workbench.tasks.errors import ConfigError

_SENTENCE_PIECE = ("bpe", "unigram")
_PIECES = (*_SENTENCE_PIECE, "wordpiece")
_TOKENIZERS = (*_PIECES, "words", "whitespace")
# Also in `keras_drill.data`, which imports TensorFlow.
LONG_PAIRS = ("drop", "cut", "end")
_LEAST_COVERAGE = 0.98
SPECIAL = ("<pad>", "<unk>", "<eos>", "<sos>")


@dataclasses.dataclass(frozen=True)
class PairsConfig:
    """Section `[data]`: pairs of texts, vocabulary and batches."""

    path: str = option(
        "",
        'a folder with two text files per split or with .tsv files; or "tfds:" and the name of '
        "a data set",
        may_change=True,
    )
    tokenizer: str = option(
        "bpe",
        'subwords: "bpe" or "unigram" (SentencePiece), "wordpiece"; words: "words" (raw text), '
        '"whitespace" (tokenized text)',
        choices=_TOKENIZERS,
    )
    tokenizer_model: str = option(
        "",
        'file of a SentencePiece model, or of one subword per line ("wordpiece"); empty: '
        "learned from the training text",
    )
    source_tokenizer_model: str = option(
        "",
        "tokenizer_model of the sources, only with shared_vocabulary = false; empty: that of "
        "the targets",
    )
    vocabulary_size: int = option(
        8000, "maximum size of each vocabulary, in words or subwords", minimum=5
    )
    character_coverage: float = option(
        1.0,
        "share of the text's characters that the subwords cover; words with rarer characters "
        "are unknown",
        above=0,
        maximum=1,
    )
    user_defined_symbols: tuple[str, ...] = option(
        (), "subwords that are always in the vocabulary and never split"
    )
    shared_vocabulary: bool = option(
        True, "use one vocabulary and one embedding for sources and targets"
    )
    unicode_normalization: str = option(
        "none",
        'Unicode normalization of the text: "none", "NFC", "NFD", "NFKC" or "NFKD"',
        choices=("none", "NFC", "NFD", "NFKC", "NFKD"),
    )
    lowercase: bool = option(False, "lower-case all text")
    moses: str = option(
        "",
        "language of the text for Moses tokenization before the tokenizer, or two languages, "
        '"de-en"; empty: no Moses tokenization',
    )
    batch_tokens: int = option(
        4096, "maximum number of tokens of a batch on each side, including padding", minimum=1
    )
    max_length: int = option(
        128,
        "maximum number of tokens of each side of a training pair, and of a source in decoding",
        minimum=2,
    )
    long_pairs: str = option(
        "drop",
        'training pairs above max_length: "drop", "cut" (targets without end token) or "end" '
        "(cut, with end token)",
        choices=LONG_PAIRS,
        in_older_runs="end",
    )
    max_length_ratio: float = option(
        0.0,
        "maximum ratio of the lengths of the two sides; other training pairs are dropped; 0: no "
        "limit",
        minimum=0,
    )

    @property
    def symbols(self) -> tuple[str, ...]:
        """Words that tokenizers must not split."""
        return self.user_defined_symbols

    @property
    def truncation_side(self) -> str:
        """The end at which long sources are truncated, "left" or "right"."""
        return "right"

    @property
    def turn_separator(self) -> str | None:
        """The word between the turns of a dialogue source; `None` if sources have no turns.

        Long sources lose their oldest turns first.
        """
        return None

    @property
    def read_symbols(self) -> tuple[str, ...]:
        """`symbols` after preprocessing, that is, lower-cased if the text is."""
        return tuple(each.lower() for each in self.symbols) if self.lowercase else self.symbols

    @property
    def learns_sentence_pieces(self) -> bool:
        """Whether a SentencePiece model is trained on the training text."""
        return self.tokenizer in _SENTENCE_PIECE and not self.tokenizer_model

    @property
    def bleu_tokenizer(self) -> str:
        """The value of `decoding.tokenize`, the tokenization for BLEU, if that is "auto".

        With a whitespace tokenizer, the text is assumed to be tokenized and is scored unchanged.
        """
        return "none" if self.tokenizer == "whitespace" and not self.moses else "13a"

    @property
    def languages(self) -> tuple[str, str]:
        """Languages of sources and targets for Moses tokenization; empty without Moses."""
        source, _, target = self.moses.partition("-")
        return source, target or source

    @property
    def shares_tokenizer(self) -> bool:
        """Whether both sides have the same tokenizer."""
        return self.shared_vocabulary and len(set(self.languages)) == 1

    def check(self) -> None:
        """Raises `ConfigError` for combinations of options that are not allowed."""
        self._check_pieces()
        if 0 < self.max_length_ratio < 1:
            raise ConfigError(
                "option data.max_length_ratio must be 0 or at least 1: it is the number of tokens "
                "of the longer side divided by that of the shorter side. "
                f"Received: {self.max_length_ratio}"
            )
        if self.moses and not re.fullmatch("[a-z]+(-[a-z]+)?", self.moses):
            raise ConfigError(
                "option data.moses must be a language such as 'en', or two languages such as "
                f"'de-en'. Received: {self.moses!r}"
            )
        if self.moses and self.tokenizer in ("words", "wordpiece"):
            raise ConfigError(
                "option data.moses must be empty with data.tokenizer = 'words' or 'wordpiece', "
                f"which already split at punctuation. Received: {self.moses!r}"
            )

    def _check_pieces(self) -> None:
        if self.tokenizer_model and self.tokenizer not in _PIECES:
            raise ConfigError(
                f"option data.tokenizer_model must not name a file with data.tokenizer = "
                f"{self.tokenizer!r}, which has no subwords. Received: {self.tokenizer_model!r}"
            )
        if self.source_tokenizer_model and (self.shared_vocabulary or not self.tokenizer_model):
            raise ConfigError(
                "option data.source_tokenizer_model requires data.shared_vocabulary = false, and "
                "data.tokenizer_model for the targets. "
                f"Received: {self.source_tokenizer_model!r} with data.shared_vocabulary = "
                f"{str(self.shared_vocabulary).lower()}, data.tokenizer_model = "
                f"{self.tokenizer_model!r}"
            )
        if self.learns_sentence_pieces and self.character_coverage < _LEAST_COVERAGE:
            raise ConfigError(
                f"option data.character_coverage must be at least {_LEAST_COVERAGE} with "
                f"data.tokenizer = {self.tokenizer!r}. Received: {self.character_coverage}"
            )
        symbols = self.user_defined_symbols
        for symbol in symbols:
            if symbol.split() != [symbol] or symbol in SPECIAL or symbols.count(symbol) > 1:
                raise ConfigError(
                    "option data.user_defined_symbols must be different words without spaces, "
                    f"other than {', '.join(SPECIAL)}. Received: {symbol!r}"
                )
        if symbols and (
            self.tokenizer == "words" or (self.tokenizer_model and self.tokenizer != "wordpiece")
        ):
            raise ConfigError(
                "option data.user_defined_symbols must be empty with data.tokenizer = 'words' "
                "(which splits at all punctuation), and with a SentencePiece model in "
                "data.tokenizer_model (which has its own symbols). "
                f"Received: {list(symbols)} with data.tokenizer = {self.tokenizer!r}, "
                f"data.tokenizer_model = {self.tokenizer_model!r}"
            )
