"""Options of a language model: its text, its network, its output layer, and what it writes."""

import dataclasses

from keras_drill.training.config.option import LARGEST_SEED, option


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Section `[data]`: which text, which words, which batches."""

    path: str = option(
        "", "a text file, or a folder with train, valid and test text", may_change=True
    )
    tokenizer: str = option(
        "words",
        '"words" for raw text, "whitespace" for text that is already cut into words',
        choices=("words", "whitespace"),
    )
    vocabulary: str = option(
        "", "vocabulary file, one word per line; empty: counted in the training text"
    )
    max_vocabulary: int = option(0, "most words to keep, the most frequent ones; 0: all", minimum=0)
    min_count: int = option(1, "how often a word must occur to be kept", minimum=1)
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


# Keras' that keep the shape and need no arguments; importing Keras to ask would take seconds.
# fmt: off
_ACTIVATIONS = (
    "celu", "elu", "exponential", "gelu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish",
    "hard_tanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6",
    "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus",
    "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh", "tanh_shrink",
)
# fmt: on
_KINDS = ("softmax", "tied", "bilinear", "dual", "drill", "mos", "kerbs", "drill-kerbs")


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """Section `[head]`: the output layer."""

    kind: str = option("tied", ", ".join(f'"{kind}"' for kind in _KINDS), choices=_KINDS)
    tied: bool = option(
        True, "labels are the embeddings of the words that are read (mos, kerbs, drill-kerbs)"
    )
    depth: int = option(1, "layers of the label encoder (drill, drill-kerbs)", minimum=1)
    units: int = option(0, "size of the joint space (dual); 0: embedding_dim", minimum=0)
    activation: str = option(
        "relu", "any Keras activation (drill, drill-kerbs, dual)", choices=_ACTIVATIONS
    )
    dropout: float = option(
        0.0, "dropout inside the label encoder (drill, drill-kerbs)", minimum=0, below=1
    )
    variational_dropout: bool = option(False, "one dropout mask for all words (drill, drill-kerbs)")
    residual_to_input: bool = option(
        True, "add the embedding after each layer (drill, drill-kerbs)"
    )
    residual_to_previous: bool = option(
        False, "add the layer before after each layer (drill, drill-kerbs)"
    )
    encode_hidden: bool = option(False, "the same network on the hidden side (drill, drill-kerbs)")
    num_mixtures: int = option(15, "softmaxes that are mixed (mos)", minimum=1)
    context_dim: int = option(
        0, "size of their contexts, and of untied labels (mos); 0: embedding_dim", minimum=0
    )
    context_dropout: float = option(0.0, "dropout on their contexts (mos)", minimum=0, below=1)
    use_bias: bool = option(True, "one bias per word, or per sense")
    logit_soft_cap: float = option(0.0, "scores become cap·tanh(score/cap); 0: off", minimum=0)
    z_loss: float = option(0.0, "weight of the squared log-normaliser in the loss", minimum=0)
    label_smoothing: float = option(
        0.0,
        "part of the probability spread over all words",
        minimum=0,
        below=1,
    )
    tile_size: int = option(0, "tokens per tile of the loss; 0: chosen from memory", minimum=0)

    @property
    def has_senses(self) -> bool:
        """Whether words have several senses, so that section `[senses]` counts."""
        return self.kind in ("kerbs", "drill-kerbs")

    @property
    def shares_embedding(self) -> bool:
        """Whether the labels are made from the embeddings of the words that are read."""
        if self.kind == "mos" or self.has_senses:
            return self.tied
        return self.kind != "softmax"


@dataclasses.dataclass(frozen=True)
class SensesConfig:
    """Section `[senses]`: how many senses words have, and how they are compared and moved."""

    per_word: float = option(
        3.0, "senses per word on average (all of [senses]: kerbs, drill-kerbs)", minimum=1
    )
    min_senses: int = option(1, "fewest senses of a word", minimum=1)
    max_senses: int = option(4, "most senses of a word", minimum=1)
    variant: str = option(
        "paper",
        'the kernel: "paper", "reference" (its authors\' code), or "inner_product" for none',
        choices=("paper", "reference", "inner_product"),
    )
    weighting: str = option(
        "posterior",
        'how a tied embedding weighs a word\'s senses: "posterior" (exact, kerbs only) or "usage" '
        "(faster)",
        choices=("posterior", "usage"),
    )
    dynamic: bool = option(True, "move little-used senses to words that need more")
    policy: str = option(
        "ranking",
        'which move where: "threshold" (the paper\'s), "ranking" (its authors\' code), or "idle"',
        choices=("threshold", "ranking", "idle"),
    )
    threshold: float = option(
        -7.0, "words below this mean log-probability take one (threshold)", maximum=0
    )
    ratio: float = option(
        0.005, "most moves at a time, as a share of the vocabulary (ranking)", above=0, maximum=1
    )
    idle_share: float = option(
        0.1,
        "share of its word's usage below which a sense may move (idle)",
        above=0,
        below=0.5,
    )
    interval: int = option(100, "training steps between moves", minimum=1)
    momentum: float = option(
        0.1, "weight of a new observation in the running means", above=0, maximum=1
    )
    moved_embedding: str = option(
        "keep",
        'of a moved sense: "keep", or "near" to restart near the most used one of its new word',
        choices=("keep", "near"),
    )


@dataclasses.dataclass(frozen=True)
class SamplesConfig:
    """Section `[samples]`: continuations for the report."""

    prompts: tuple[str, ...] = option(
        ("the", "in the"), "texts to continue; empty list: none", may_change=True
    )
    max_tokens: int = option(40, "tokens to add to each", minimum=1, may_change=True)
    sampler: str = option(
        "top-p",
        '"greedy", "temperature", "top-k" or "top-p"',
        choices=("greedy", "temperature", "top-k", "top-p"),
        may_change=True,
    )
    temperature: float = option(0.8, "less: safer words (not greedy)", above=0, may_change=True)
    k: int = option(40, "choose among so many words (top-k)", minimum=1, may_change=True)
    p: float = option(
        0.9, "choose among this much probability (top-p)", above=0, maximum=1, may_change=True
    )
    seed: int = option(
        0, "another seed, another text", minimum=0, maximum=LARGEST_SEED, may_change=True
    )
