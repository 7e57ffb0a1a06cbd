"""Options of tasks with a source: text, network, and decoding."""

import dataclasses
import re
from typing import ClassVar

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.config.check_options import check_head, check_training
from keras_drill.workbench.tasks.config.head_sections import SensesConfig
from keras_drill.workbench.tasks.config.option import AUTO_OR_BOOL, option
from keras_drill.workbench.tasks.config.training_sections import OptimizerConfig
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
    """Section `[data]`: text, vocabulary and batches."""

    path: str = option(
        "",
        'a folder with two texts a split, or with .tsv files; or "tfds:" and a data set\'s name',
        may_change=True,
    )
    tokenizer: str = option(
        "bpe",
        '"bpe" or "unigram" (SentencePiece) or "wordpiece" learn pieces of words; "words", '
        '"whitespace"',
        choices=_TOKENIZERS,
    )
    tokenizer_model: str = option(
        "",
        'file of a SentencePiece model, or of pieces, one a line ("wordpiece"); empty: learned',
    )
    source_tokenizer_model: str = option(
        "", "that of the sources, where they have a vocabulary of their own; empty: the same"
    )
    vocabulary_size: int = option(8000, "most words or pieces, for each vocabulary", minimum=5)
    character_coverage: float = option(
        1.0,
        "share of the text's characters that become pieces; words with rarer ones are unknown",
        above=0,
        maximum=1,
    )
    user_defined_symbols: tuple[str, ...] = option(
        (), "pieces to have whatever the text is, and never to cut"
    )
    shared_vocabulary: bool = option(True, "one vocabulary and one embedding for both sides")
    unicode_normalization: str = option(
        "none",
        'one way of writing each character: "none", "NFC", "NFD", "NFKC" or "NFKD"',
        choices=("none", "NFC", "NFD", "NFKC", "NFKD"),
    )
    lowercase: bool = option(False, "lower-case all text")
    moses: str = option(
        "",
        'Moses tokenization first: the language, or those of both sides, "de-en"; empty: none',
    )
    batch_tokens: int = option(
        4096, "most tokens of a batch on either side, padding counted", minimum=1
    )
    max_length: int = option(
        128, "most tokens of a side of a training pair, and that are read of a source", minimum=2
    )
    long_pairs: str = option(
        "drop",
        'longer training pairs: "drop", "cut" (targets without an end) or "end" (cut, with one)',
        choices=LONG_PAIRS,
        in_older_runs="end",
    )
    max_length_ratio: float = option(
        0.0,
        "training pairs with a side so many times as long as the other are dropped; 0: none",
        minimum=0,
    )

    @property
    def symbols(self) -> tuple[str, ...]:
        """Words that tokenizers must not split."""
        return self.user_defined_symbols

    @property
    def truncation_side(self) -> str:
        """The side at which long sources are cut."""
        return "right"

    @property
    def turn_separator(self) -> str | None:
        """The word between the turns of a source. The oldest turns are cut first."""
        return None

    @property
    def read_symbols(self) -> tuple[str, ...]:
        """The symbols as the tokenizer reads them."""
        return tuple(each.lower() for each in self.symbols) if self.lowercase else self.symbols

    @property
    def learns_sentence_pieces(self) -> bool:
        """Whether a SentencePiece model is learned."""
        return self.tokenizer in _SENTENCE_PIECE and not self.tokenizer_model

    @property
    def bleu_tokenizer(self) -> str:
        """The default of `decoding.tokenize`, the tokenization of BLEU.

        With a whitespace tokenizer, the text is assumed to be tokenized and is scored unchanged.
        """
        return "none" if self.tokenizer == "whitespace" and not self.moses else "13a"

    @property
    def languages(self) -> tuple[str, str]:
        """Languages of sources and targets for Moses; empty if they have no effect."""
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
                "option data.max_length_ratio must be 0 or at least 1: it is the longer side's "
                f"tokens by the shorter one's; not {self.max_length_ratio}"
            )
        if self.moses and not re.fullmatch("[a-z]+(-[a-z]+)?", self.moses):
            raise ConfigError(
                "option data.moses must be a language such as 'en', or two such as 'de-en', not "
                f"{self.moses!r}"
            )
        if self.moses and self.tokenizer in ("words", "wordpiece"):
            raise ConfigError(
                "option data.moses must be empty with data.tokenizer = 'words' and 'wordpiece', "
                f"which cut at punctuation themselves, not {self.moses!r}"
            )

    def _check_pieces(self) -> None:
        if self.tokenizer_model and self.tokenizer not in _PIECES:
            raise ConfigError(
                f"option data.tokenizer_model must be empty with data.tokenizer = "
                f"{self.tokenizer!r}, which has no pieces, not {self.tokenizer_model!r}"
            )
        if self.source_tokenizer_model and (self.shared_vocabulary or not self.tokenizer_model):
            raise ConfigError(
                "option data.source_tokenizer_model needs data.tokenizer_model, that of the "
                "targets, and data.shared_vocabulary = false"
            )
        if self.learns_sentence_pieces and self.character_coverage < _LEAST_COVERAGE:
            raise ConfigError(
                f"option data.character_coverage must be at least {_LEAST_COVERAGE} with "
                f"data.tokenizer = {self.tokenizer!r}, not {self.character_coverage}"
            )
        symbols = self.user_defined_symbols
        for symbol in symbols:
            if symbol.split() != [symbol] or symbol in SPECIAL or symbols.count(symbol) > 1:
                raise ConfigError(
                    "option data.user_defined_symbols must be different words without spaces, "
                    f"other than {', '.join(SPECIAL)}, not {symbol!r}"
                )
        if symbols and (
            self.tokenizer == "words" or (self.tokenizer_model and self.tokenizer != "wordpiece")
        ):
            raise ConfigError(
                "option data.user_defined_symbols must be empty with data.tokenizer = 'words', "
                "which cuts at all punctuation, and with a SentencePiece model that is given, "
                f"which has its own, not {list(symbols)}"
            )


@dataclasses.dataclass(frozen=True)
class EncoderDecoderConfig:
    """Section `[backbone]`: the encoder and the decoder."""

    kind: str = option(
        "recurrent", '"recurrent" or "transformer"', choices=("recurrent", "transformer")
    )
    embedding_dim: int = option(256, "size of the word embeddings and hidden states", minimum=1)
    num_layers: int = option(1, "layers of the encoder, and of the decoder", minimum=1)
    dropout: float = option(0.2, "dropout", minimum=0, below=1)
    cell: str = option("lstm", '"lstm" or "gru" (recurrent)', choices=("lstm", "gru"))
    units: int = option(512, "size of the recurrent layers (recurrent)", minimum=1)
    bidirectional: bool = option(True, "read the source in both directions (recurrent)")
    reverse_source: bool = option(False, "read the source backwards, if in one (recurrent)")
    source_end_last: bool = option(
        False, "read the end symbol of a reversed source last, not first (recurrent)"
    )
    attention: str = option(
        "general",
        '"general", "additive", "dot", "multi-head" or "none" (recurrent)',
        choices=("general", "additive", "dot", "multi-head", "none"),
    )
    input_feeding: bool = option(False, "feed the last hidden state back (recurrent)")
    num_heads: int = option(4, "attention heads (transformer, multi-head)", minimum=1)
    shared_value: bool = option(
        False, "one value for all heads, and no output projection (multi-head)"
    )
    feed_forward_dim: int = option(1024, "inner size (transformer)", minimum=1)
    norm_first: bool = option(True, "normalise before each sublayer, not after (transformer)")
    attention_dropout: float = option(
        0.0, "dropout on attention weights (transformer)", minimum=0, below=1
    )
    activation_dropout: float = option(
        0.0, "dropout inside the feed-forward networks (transformer)", minimum=0, below=1
    )

    @property
    def attends(self) -> bool:
        """Whether the decoder attends to the source."""
        return self.kind == "transformer" or self.attention != "none"


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """Section `[sampling]`: scheduled sampling, and sampling of target positions in training."""

    rate: float = option(
        0.0, "share of the target's words that are the model's own; 0: none", minimum=0, maximum=1
    )
    schedule: str = option(
        "constant",
        'how the share changes: "constant", "linear" up to rate, or "exponential" and '
        '"inverse-sigmoid" up to 1',
        choices=("constant", "linear", "exponential", "inverse-sigmoid"),
    )
    steps: int = option(1000, "how many steps that takes (linear), or its scale", minimum=2)
    argmax: bool = option(False, "the most probable word instead of one that is drawn")
    loss_positions: float = option(
        1.0, "share of the target's positions that count in a step, at random", above=0, maximum=1
    )


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """Section `[decoding]`: search for outputs, and evaluation of outputs."""

    num_beams: int = option(5, "beams of the search", minimum=1, may_change=True)
    length_penalty: float = option(
        1.0, "favours longer answers; 0: the most probable ones", may_change=True
    )
    coverage_penalty: float = option(
        0.0,
        "punishes source words that no word of the answer attends to",
        minimum=0,
        may_change=True,
    )
    num_results: int = option(1, "answers to a source, the best first", minimum=1, may_change=True)
    num_groups: int = option(
        1, "groups of beams that differ from each other", minimum=1, may_change=True
    )
    diversity: float = option(
        0.5, "what a word costs that an earlier group chose", minimum=0, may_change=True
    )
    max_tokens: int = option(100, "most tokens of an answer", minimum=1, may_change=True)
    max_ratio: float = option(
        2.0,
        "an answer has at most 10 tokens and so many for each of its source; 0: no such limit",
        minimum=0,
        may_change=True,
    )
    min_length: int = option(
        0, "fewest tokens before an answer may end", minimum=0, may_change=True
    )
    repetition_penalty: float = option(
        1.0,
        "words that an answer has already: probability to this power; 1: no penalty",
        above=0,
        may_change=True,
    )
    no_repeat_ngram: int = option(
        0, "n-grams of so many tokens are written once; 0: may repeat", minimum=0, may_change=True
    )
    banned_words: tuple[str, ...] = option(
        (), "words, or sequences of words, never to write", may_change=True
    )
    replace_unknown: bool = option(
        False,
        "write the source's word with the most attention where an unknown one is most probable",
        may_change=True,
    )
    max_source_tokens: int = option(
        0, "tokens that sources are cut to; 0: as data.max_length", minimum=0, may_change=True
    )
    validation_sentences: int = option(
        0, "sources of the validation text to answer after each epoch", minimum=0, may_change=True
    )
    best_by: str = option(
        "perplexity",
        'the best epoch is that of the best validation "perplexity", "bleu" or "chrf"',
        choices=("perplexity", "bleu", "chrf"),
    )
    tokenize: str = option(
        "auto",
        'how sacrebleu cuts words for BLEU; "auto": "none" for data.tokenizer = "whitespace" '
        'without Moses, else "13a"',
        choices=("auto", "13a", "intl", "char", "none", "zh"),
        may_change=True,
    )
    score_lowercase: str = option(
        "auto",
        'whether BLEU and chrF ignore case, "true" or "false"; "auto": as data.lowercase',
        choices=AUTO_OR_BOOL,
        may_change=True,
    )
    attention_maps: int = option(
        2, "answers whose attention to show in the report", minimum=0, may_change=True
    )


@dataclasses.dataclass(frozen=True)
class SequenceToSequenceConfig(RunConfig):
    """Base class for options of a run with sources. Each task has a subclass."""

    reads_sources: ClassVar[bool] = True
    word_files: ClassVar[tuple[str, ...]] = (
        "vocabulary.txt",
        "vocabulary.counts",
        "tokenizer.json",
        "source-vocabulary.txt",
        "source-vocabulary.counts",
        "source-tokenizer.json",
        "descriptions.npy",
    )

    data: PairsConfig = dataclasses.field(default_factory=PairsConfig)
    backbone: EncoderDecoderConfig = dataclasses.field(default_factory=EncoderDecoderConfig)
    senses: SensesConfig = dataclasses.field(
        default_factory=lambda: SensesConfig(weighting="usage")
    )
    optimizer: OptimizerConfig = dataclasses.field(
        default_factory=lambda: OptimizerConfig(
            kind="adam",
            learning_rate=0.001,
            weight_decay=0.0,
            clip_norm=1.0,
            scale_with_length=False,
        )
    )
    sampling: SamplingConfig = dataclasses.field(default_factory=SamplingConfig)
    decoding: DecodingConfig = dataclasses.field(default_factory=DecodingConfig)

    @property
    def max_source_tokens(self) -> int:
        """Number of tokens to which sources are cut in decoding and evaluation."""
        return self.decoding.max_source_tokens or self.data.max_length

    def resolved(self) -> "SequenceToSequenceConfig":
        values = {"decoding.tokenize": self.data.bleu_tokenizer}
        values["decoding.score_lowercase"] = str(self.data.lowercase).lower()
        mine = self.to_mapping()["decoding"]
        return self.replace(
            {name: value for name, value in values.items() if mine[name.split(".")[1]] == "auto"}
        )

    def check(self) -> None:
        check_training(self)
        check_head(self, 0)
        backbone, optimizer, decoding = self.backbone, self.optimizer, self.decoding
        self.data.check()
        if optimizer.scale_with_length:
            raise ConfigError(
                "option optimizer.scale_with_length must be false: lengths vary by sentence here"
            )
        if optimizer.kind == "nt-asgd":
            raise ConfigError(
                "option optimizer.kind must be 'adam' or 'sgd' for this task, not 'nt-asgd'"
            )
        if backbone.kind == "transformer" and backbone.embedding_dim % backbone.num_heads:
            raise ConfigError(
                f"option backbone.num_heads must divide backbone.embedding_dim = "
                f"{backbone.embedding_dim}, not {backbone.num_heads}"
            )
        if backbone.kind == "recurrent":
            _check_recurrent(backbone)
        if decoding.coverage_penalty and not backbone.attends:
            raise ConfigError("option decoding.coverage_penalty must be 0 without attention")
        if decoding.replace_unknown and not backbone.attends:
            raise ConfigError("option decoding.replace_unknown must be false without attention")
        if decoding.num_results > decoding.num_beams:
            raise ConfigError(
                f"option decoding.num_results must be at most decoding.num_beams = "
                f"{decoding.num_beams}, not {decoding.num_results}"
            )
        if decoding.num_beams % decoding.num_groups:
            raise ConfigError(
                f"option decoding.num_groups must divide decoding.num_beams = "
                f"{decoding.num_beams}, not {decoding.num_groups}"
            )
        if decoding.max_source_tokens == 1:
            raise ConfigError("option decoding.max_source_tokens must be 0, or 2 or more, not 1")
        if decoding.min_length > decoding.max_tokens:
            raise ConfigError(
                f"option decoding.min_length must be at most decoding.max_tokens = "
                f"{decoding.max_tokens}, not {decoding.min_length}"
            )
        if not all(text.strip() for text in decoding.banned_words):
            raise ConfigError(
                "option decoding.banned_words must be a list of words, none of them empty. "
                f"Received: decoding.banned_words={list(decoding.banned_words)}"
            )
        if decoding.best_by != "perplexity" and not decoding.validation_sentences:
            raise ConfigError(
                f"option decoding.validation_sentences must be positive with decoding.best_by = "
                f"{decoding.best_by!r}"
            )
        if (
            backbone.kind == "transformer"
            and self.head.has_senses
            and self.head.tied
            and self.senses.weighting == "posterior"
        ):
            raise ConfigError(
                "option senses.weighting must be 'usage' with backbone.kind = 'transformer', whose "
                "positions run in parallel, not 'posterior'"
            )


def _check_recurrent(backbone: EncoderDecoderConfig) -> None:
    if backbone.input_feeding and backbone.attention == "none":
        raise ConfigError("option backbone.input_feeding must be false without attention")
    if backbone.reverse_source and backbone.bidirectional:
        raise ConfigError(
            "option backbone.reverse_source must be false with backbone.bidirectional = true"
        )
    if backbone.source_end_last and not backbone.reverse_source:
        raise ConfigError(
            "option backbone.source_end_last must be false with backbone.reverse_source = false"
        )
    if backbone.shared_value and backbone.attention != "multi-head":
        raise ConfigError(
            "option backbone.shared_value must be false with backbone.attention = "
            f"{backbone.attention!r}"
        )
