"""Options of a language model: text, network, and sampled continuations."""

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
        '"words" for raw text, "whitespace" for text that is already cut into words',
        choices=("words", "whitespace"),
    )
    lowercase: str = option(
        "auto",
        'lower-case all text, "true" or "false"; "auto": with tokenizer = "words"',
        choices=AUTO_OR_BOOL,
    )
    unit: str = option(
        "line",
        'a text that is learned as one: a "line", or a "paragraph", the lines up to an empty one',
        choices=("line", "paragraph"),
    )
    vocabulary: str = option(
        "", "vocabulary file, one word per line; empty: counted in the training text"
    )
    max_vocabulary: int = option(0, "most words to keep, the most frequent ones; 0: all", minimum=0)
    min_count: int = option(1, "how often a word must occur to be kept", minimum=1)
    on_disk: str = option(
        "",
        "folder that keeps the ids of the training text, when they are more than memory holds; "
        "empty: in memory",
        may_change=True,
    )
    batch_size: int = option(20, "rows of text that are read side by side", minimum=1)
    sequence_length: int = option(70, "tokens per step of backpropagation through time", minimum=1)
    variable_length: bool = option(True, "vary that length at random, as AWD-LSTM does")


@dataclasses.dataclass(frozen=True)
class BackboneConfig:
    """Section `[backbone]`: the recurrent network that reads the words."""

    kind: str = option("awd-lstm", '"awd-lstm" or "gru"', choices=("awd-lstm", "gru"))
    embedding_dim: int = option(400, "size of the word embeddings", minimum=1)
    units: int = option(1150, "size of the recurrent layers but the last", minimum=1)
    num_layers: int = option(3, "recurrent layers", minimum=1)
    output_dim: int = option(
        0,
        "size of the last recurrent layer; 0: embedding_dim, which weight tying needs (not mos)",
        minimum=0,
    )
    dropout: float = option(0.4, "dropout on the output", minimum=0, below=1)
    hidden_dropout: float = option(0.25, "dropout between recurrent layers", minimum=0, below=1)
    input_dropout: float = option(0.65, "dropout on the embedded words", minimum=0, below=1)
    embedding_dropout: float = option(
        0.1, "probability to drop a word from the embedding for a step", minimum=0, below=1
    )
    weight_dropout: float = option(
        0.5, "dropout on the recurrent matrices (awd-lstm)", minimum=0, below=1
    )
    activation_regularization: float = option(2.0, "AR, alpha (awd-lstm)", minimum=0)
    temporal_activation_regularization: float = option(1.0, "TAR, beta (awd-lstm)", minimum=0)


@dataclasses.dataclass(frozen=True)
class SamplesConfig:
    """Section `[samples]`: continuations for the report."""

    prompts: tuple[str, ...] = option(
        ("auto",),
        'texts to continue; ["auto"]: beginnings of validation lines; empty list: none',
        may_change=True,
    )
    max_tokens: int = option(40, "tokens to add to each", minimum=1, may_change=True)
    sampler: str = option(
        "top-p",
        '"greedy", "temperature", "top-k", "top-p" or "min-p"',
        choices=("greedy", "temperature", "top-k", "top-p", "min-p"),
        may_change=True,
    )
    temperature: float = option(
        0.8,
        "less: safer words (not greedy)",
        minimum=1e-30,
        maximum=1e30,
        may_change=True,
    )
    k: int = option(40, "choose among so many words (top-k)", minimum=1, may_change=True)
    p: float = option(
        0.9, "choose among this much probability (top-p)", above=0, maximum=1, may_change=True
    )
    min_p: float = option(
        0.1,
        "choose among words that are so many times as probable as the best (min-p)",
        above=0,
        maximum=1,
        may_change=True,
    )
    seed: int = option(
        0, "another seed, another text", minimum=0, maximum=LARGEST_SEED, may_change=True
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
                "option data.max_vocabulary must be 0 or at least 3, two of which are <unk> and "
                f"<eos>, not {self.data.max_vocabulary}"
            )
