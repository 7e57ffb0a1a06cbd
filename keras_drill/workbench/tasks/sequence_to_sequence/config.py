"""Options of encoder–decoder tasks: network, training and decoding."""

import dataclasses
from typing import ClassVar

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.config.check_options import check_head, check_training
from keras_drill.workbench.tasks.config.head_sections import SensesConfig
from keras_drill.workbench.tasks.config.option import AUTO_OR_BOOL, option
from keras_drill.workbench.tasks.config.training_sections import OptimizerConfig
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig


@dataclasses.dataclass(frozen=True)
class EncoderDecoderConfig:
    """Section `[backbone]`: the encoder and the decoder."""

    kind: str = option(
        "recurrent",
        'encoder and decoder: "recurrent" or "transformer"',
        choices=("recurrent", "transformer"),
    )
    embedding_dim: int = option(256, "size of the word embeddings and hidden states", minimum=1)
    num_layers: int = option(1, "number of layers of the encoder and of the decoder", minimum=1)
    dropout: float = option(0.2, "dropout rate", minimum=0, below=1)
    cell: str = option(
        "lstm", 'recurrent cell: "lstm" or "gru" (only recurrent)', choices=("lstm", "gru")
    )
    units: int = option(512, "size of the recurrent layers (only recurrent)", minimum=1)
    bidirectional: bool = option(True, "read the source in both directions (only recurrent)")
    reverse_source: bool = option(
        False, "read the source backwards; needs bidirectional = false (only recurrent)"
    )
    source_end_last: bool = option(
        False, "read the end token of a reversed source last instead of first (only recurrent)"
    )
    attention: str = option(
        "general",
        'attention to the source: "general", "additive", "dot", "multi-head" or "none" (only '
        "recurrent)",
        choices=("general", "additive", "dot", "multi-head", "none"),
    )
    attention_layers: int = option(
        1, "number of layers of the attention's network (only additive)", minimum=1
    )
    input_feeding: bool = option(
        False, "feed the decoder's last hidden state back as an input (only recurrent)"
    )
    num_heads: int = option(
        4, "number of attention heads (only transformer, multi-head)", minimum=1
    )
    shared_value: bool = option(
        False, "use one value projection for all heads, and no output projection (only multi-head)"
    )
    feed_forward_dim: int = option(
        1024, "inner size of the feed-forward networks (only transformer)", minimum=1
    )
    norm_first: bool = option(
        True, "normalize before each sublayer instead of after (only transformer)"
    )
    attention_dropout: float = option(
        0.0, "dropout rate on the attention weights (only transformer)", minimum=0, below=1
    )
    activation_dropout: float = option(
        0.0, "dropout rate inside the feed-forward networks (only transformer)", minimum=0, below=1
    )

    @property
    def attends(self) -> bool:
        """Whether the decoder attends to the source."""
        return self.kind == "transformer" or self.attention != "none"


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """Section `[sampling]`: scheduled sampling, and random target positions in the loss."""

    rate: float = option(
        0.0,
        "scheduled sampling: probability of replacing a target input word by the model's "
        "prediction; 0: off (only constant, linear)",
        minimum=0,
        maximum=1,
    )
    schedule: str = option(
        "constant",
        'rate over the training steps: "constant", "linear" from 0 to rate, or "exponential" or '
        '"inverse-sigmoid" from 0 to 1',
        choices=("constant", "linear", "exponential", "inverse-sigmoid"),
    )
    steps: int = option(
        1000,
        "number of steps in which the rate rises (linear), or its time scale (exponential, "
        "inverse-sigmoid)",
        minimum=2,
    )
    argmax: bool = option(
        False, "replace target words by the most probable word instead of a sampled word"
    )
    loss_positions: float = option(
        1.0,
        "share of the target positions, drawn at random in each step, that contribute to the loss",
        above=0,
        maximum=1,
    )
    one_position: bool = option(
        False, "compute the loss on one random target position per example; needs loss_positions 1"
    )


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """Section `[decoding]`: beam search, and evaluation of outputs by BLEU and chrF."""

    num_beams: int = option(5, "number of beams of the beam search", minimum=1, may_change=True)
    length_penalty: float = option(
        1.0,
        "exponent of the length penalty; higher values prefer longer outputs; 0: rank by "
        "log-probability",
        may_change=True,
    )
    coverage_penalty: float = option(
        0.0,
        "weight of the coverage penalty, which lowers the score of outputs that ignore source "
        "words",
        minimum=0,
        may_change=True,
    )
    num_results: int = option(
        1, "number of outputs per source, the best first", minimum=1, may_change=True
    )
    num_groups: int = option(
        1,
        "number of groups of beams that differ from each other (diverse beam search)",
        minimum=1,
        may_change=True,
    )
    diversity: float = option(
        0.5,
        "reduction of the log-probability of a word for each choice of this word by an earlier "
        "group",
        minimum=0,
        may_change=True,
    )
    max_tokens: int = option(
        100, "maximum number of tokens of an output", minimum=1, may_change=True
    )
    max_ratio: float = option(
        2.0,
        "maximum number of output tokens per source token, in addition to 10; 0: no such limit",
        minimum=0,
        may_change=True,
    )
    min_length: int = option(
        0, "minimum number of tokens before an output may end", minimum=0, may_change=True
    )
    repetition_penalty: float = option(
        1.0,
        "exponent on the probability of words that are already in the output; 1: no penalty",
        above=0,
        may_change=True,
    )
    no_repeat_ngram: int = option(
        0,
        "n-grams of this size occur at most once in an output; 0: no such limit",
        minimum=0,
        may_change=True,
    )
    banned_words: tuple[str, ...] = option(
        (), "words, or sequences of words, that outputs must not contain", may_change=True
    )
    replace_unknown: bool = option(
        False,
        "replace unknown words in outputs by the source word with the most attention",
        may_change=True,
    )
    max_source_tokens: int = option(
        0,
        "maximum number of tokens of a source, which is truncated; 0: data.max_length",
        minimum=0,
        may_change=True,
    )
    validation_sentences: int = option(
        0,
        "number of validation sources to generate outputs for after each epoch; 0: no BLEU and "
        "chrF",
        minimum=0,
        may_change=True,
    )
    best_by: str = option(
        "perplexity",
        'validation metric that selects the best epoch: "perplexity", "bleu" or "chrf"',
        choices=("perplexity", "bleu", "chrf"),
    )
    tokenize: str = option(
        "auto",
        'tokenization of sacrebleu for BLEU; "auto": "none" for data.tokenizer = "whitespace" '
        'without Moses, else "13a"',
        choices=("auto", "13a", "intl", "char", "none", "zh"),
        may_change=True,
    )
    score_lowercase: str = option(
        "auto",
        'ignore case in BLEU and chrF: "true", "false", or "auto": as data.lowercase',
        choices=AUTO_OR_BOOL,
        may_change=True,
    )
    attention_maps: int = option(
        2, "number of outputs whose attention is shown in the report", minimum=0, may_change=True
    )


@dataclasses.dataclass(frozen=True)
class SequenceToSequenceConfig(RunConfig):
    """Base class for the options of encoder–decoder tasks. Each task has a subclass."""

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
        backbone, optimizer = self.backbone, self.optimizer
        self.data.check()
        if optimizer.scale_with_length:
            raise ConfigError(
                "option optimizer.scale_with_length must be false for this task, in which each "
                "sentence has its own length. Received: true"
            )
        if optimizer.kind == "nt-asgd":
            raise ConfigError(
                "option optimizer.kind must be 'adam' or 'sgd' for this task. Received: 'nt-asgd'"
            )
        if backbone.kind == "transformer" and backbone.embedding_dim % backbone.num_heads:
            raise ConfigError(
                f"option backbone.num_heads must divide backbone.embedding_dim = "
                f"{backbone.embedding_dim}. Received: {backbone.num_heads}"
            )
        if backbone.kind == "recurrent":
            _check_recurrent(backbone)
        if self.sampling.one_position and self.sampling.loss_positions != 1:
            raise ConfigError(
                "option sampling.loss_positions must be 1 with sampling.one_position = true. "
                f"Received: {self.sampling.loss_positions}"
            )
        _check_decoding(self.decoding, backbone)
        if (
            backbone.kind == "transformer"
            and self.head.has_senses
            and self.head.tied
            and self.senses.weighting == "posterior"
        ):
            raise ConfigError(
                "option senses.weighting must be 'usage' with backbone.kind = 'transformer', which "
                "processes all positions in parallel. Received: 'posterior'"
            )


def _check_recurrent(backbone: EncoderDecoderConfig) -> None:
    if backbone.input_feeding and backbone.attention == "none":
        raise ConfigError(
            "option backbone.input_feeding must be false with backbone.attention = 'none'. "
            "Received: true"
        )
    if backbone.reverse_source and backbone.bidirectional:
        raise ConfigError(
            "option backbone.reverse_source must be false with backbone.bidirectional = true. "
            "Received: true"
        )
    if backbone.source_end_last and not backbone.reverse_source:
        raise ConfigError(
            "option backbone.source_end_last must be false with backbone.reverse_source = false. "
            "Received: true"
        )
    if backbone.attention_layers > 1 and backbone.attention != "additive":
        raise ConfigError(
            "option backbone.attention_layers must be 1 with backbone.attention = "
            f"{backbone.attention!r}. Received: {backbone.attention_layers}"
        )
    if backbone.shared_value and backbone.attention != "multi-head":
        raise ConfigError(
            "option backbone.shared_value must be false with backbone.attention = "
            f"{backbone.attention!r}. Received: true"
        )


def _check_decoding(decoding: DecodingConfig, backbone: EncoderDecoderConfig) -> None:
    if decoding.coverage_penalty and not backbone.attends:
        raise ConfigError(
            "option decoding.coverage_penalty must be 0 with backbone.attention = 'none'. "
            f"Received: {decoding.coverage_penalty}"
        )
    if decoding.replace_unknown and not backbone.attends:
        raise ConfigError(
            "option decoding.replace_unknown must be false with backbone.attention = 'none'. "
            "Received: true"
        )
    if decoding.num_results > decoding.num_beams:
        raise ConfigError(
            f"option decoding.num_results must be at most decoding.num_beams = "
            f"{decoding.num_beams}. Received: {decoding.num_results}"
        )
    if decoding.num_beams % decoding.num_groups:
        raise ConfigError(
            f"option decoding.num_groups must divide decoding.num_beams = "
            f"{decoding.num_beams}. Received: {decoding.num_groups}"
        )
    if decoding.max_source_tokens == 1:
        raise ConfigError("option decoding.max_source_tokens must be 0 or at least 2. Received: 1")
    if decoding.min_length > decoding.max_tokens:
        raise ConfigError(
            f"option decoding.min_length must be at most decoding.max_tokens = "
            f"{decoding.max_tokens}. Received: {decoding.min_length}"
        )
    if not all(text.strip() for text in decoding.banned_words):
        raise ConfigError(
            "option decoding.banned_words must be a list of non-empty words. "
            f"Received: {list(decoding.banned_words)}"
        )
    if decoding.best_by != "perplexity" and not decoding.validation_sentences:
        raise ConfigError(
            f"option decoding.validation_sentences must be positive with decoding.best_by = "
            f"{decoding.best_by!r}. Received: 0"
        )
