"""Options of the task of language models: text, network, and sampled continuations."""

import dataclasses
from typing import ClassVar

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.config.check_options import check_head, check_training
from keras_drill.workbench.tasks.config.option import AUTO_OR_BOOL, LARGEST_SEED, option
from keras_drill.workbench.tasks.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Section `[data]`: text, vocabulary and batches."""

    path: str = option(
        "", "a text file, or a folder with train, valid and test text", may_change=True
    )
    tokenizer: str = option(
        "words",
        '"words" for raw text, "whitespace" for tokenized text',
        choices=("words", "whitespace"),
    )
    lowercase: str = option(
        "auto",
        'lower-case all text: "true", "false", or "auto": only with tokenizer = "words"',
        choices=AUTO_OR_BOOL,
    )
    unit: str = option(
        "line",
        'a text that ends with an end token: a "line", or a "paragraph" (all lines up to an '
        "empty one)",
        choices=("line", "paragraph"),
    )
    vocabulary: str = option(
        "", "vocabulary file, one word per line; empty: learned from the training text"
    )
    max_vocabulary: int = option(
        0,
        "maximum size of the vocabulary, which keeps the most frequent words; 0: no limit",
        minimum=0,
    )
    min_count: int = option(
        1, "minimum number of occurrences of a word in the vocabulary", minimum=1
    )
    on_disk: str = option(
        "",
        "folder for the ids of a training text that is too large for memory; empty: in memory",
        may_change=True,
    )
    batch_size: int = option(
        20, "number of rows in a batch: parts of the text that are read in parallel", minimum=1
    )
    sequence_length: int = option(
        70, "number of tokens per step of truncated backpropagation through time", minimum=1
    )
    variable_length: bool = option(True, "vary sequence_length at random, as AWD-LSTM does")


@dataclasses.dataclass(frozen=True)
class BackboneConfig:
    """Section `[backbone]`: the recurrent network that reads the words."""

    kind: str = option(
        "awd-lstm", 'recurrent network: "awd-lstm" or "gru"', choices=("awd-lstm", "gru")
    )
    embedding_dim: int = option(400, "size of the word embeddings", minimum=1)
    units: int = option(1150, "size of all recurrent layers except the last one", minimum=1)
    num_layers: int = option(3, "number of recurrent layers", minimum=1)
    output_dim: int = option(
        0,
        "size of the last recurrent layer; 0: embedding_dim, as weight tying requires (except "
        "for mos)",
        minimum=0,
    )
    dropout: float = option(0.4, "dropout rate on the output of the last layer", minimum=0, below=1)
    hidden_dropout: float = option(
        0.25, "dropout rate between recurrent layers", minimum=0, below=1
    )
    input_dropout: float = option(
        0.65, "dropout rate on the word embeddings in the input", minimum=0, below=1
    )
    embedding_dropout: float = option(
        0.1,
        "probability of dropping a word of the vocabulary in a training step",
        minimum=0,
        below=1,
    )
    weight_dropout: float = option(
        0.5, "dropout rate on the recurrent weights (only awd-lstm)", minimum=0, below=1
    )
    activation_regularization: float = option(
        2.0, "weight of activation regularization, AR alpha (only awd-lstm)", minimum=0
    )
    temporal_activation_regularization: float = option(
        1.0, "weight of temporal activation regularization, TAR beta (only awd-lstm)", minimum=0
    )


@dataclasses.dataclass(frozen=True)
class SamplesConfig:
    """Section `[samples]`: continuations for the report."""

    prompts: tuple[str, ...] = option(
        ("auto",),
        'texts to continue; ["auto"]: beginnings of validation lines; empty list: no samples',
        may_change=True,
    )
    max_tokens: int = option(
        40, "maximum number of tokens to add to a prompt", minimum=1, may_change=True
    )
    sampler: str = option(
        "top-p",
        'sampling method: "greedy", "temperature", "top-k", "top-p" or "min-p"',
        choices=("greedy", "temperature", "top-k", "top-p", "min-p"),
        may_change=True,
    )
    temperature: float = option(
        0.8,
        "sampling temperature; lower values prefer more probable words (not greedy)",
        minimum=1e-30,
        maximum=1e30,
        may_change=True,
    )
    k: int = option(
        40, "number of most probable words to sample from (only top-k)", minimum=1, may_change=True
    )
    p: float = option(
        0.9,
        "total probability of the most probable words to sample from (only top-p)",
        above=0,
        maximum=1,
        may_change=True,
    )
    min_p: float = option(
        0.1,
        "minimum probability of a sampled word, relative to the most probable word (only min-p)",
        above=0,
        maximum=1,
        may_change=True,
    )
    seed: int = option(
        0, "random seed of the samples", minimum=0, maximum=LARGEST_SEED, may_change=True
    )


@dataclasses.dataclass(frozen=True)
class LanguageModelConfig(RunConfig):
    """Options of a run that trains a language model.

    Example:

    >>> config = LanguageModelConfig().replace({"head.kind": "drill", "head.depth": "4"})
    >>> config.head.depth
    4
    >>> LanguageModelConfig.from_mapping(config.to_mapping()) == config
    True
    """

    task: ClassVar[str] = "language-model"
    word_files: ClassVar[tuple[str, ...]] = (
        "vocabulary.txt",
        "vocabulary.counts",
        "descriptions.npy",
    )

    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    backbone: BackboneConfig = dataclasses.field(default_factory=BackboneConfig)
    samples: SamplesConfig = dataclasses.field(default_factory=SamplesConfig)

    def resolved(self) -> "LanguageModelConfig":
        if self.data.lowercase != "auto":
            return self
        return self.replace({"data.lowercase": self.data.tokenizer == "words"})

    def check(self) -> None:
        check_training(self)
        check_head(self, self.backbone.output_dim)
        if 0 < self.data.max_vocabulary < 3:
            raise ConfigError(
                "option data.max_vocabulary must be 0 or at least 3, including <unk> and <eos>. "
                f"Received: {self.data.max_vocabulary}"
            )
