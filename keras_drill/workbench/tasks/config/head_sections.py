"""Sections `[head]` and `[senses]`: options of the output layer, for all tasks."""

import dataclasses
from pathlib import PurePath

from keras_drill.workbench.tasks.config.option import option

# Activations of Keras that keep the shape and need no arguments. Importing Keras would take
# seconds. fmt: off
_ACTIVATIONS = (
    "celu",
    "elu",
    "exponential",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
)
# fmt: on
_KINDS = (
    *("softmax", "tied", "bilinear", "dual", "drill", "described"),
    *("mos", "kerbs", "drill-kerbs"),
)


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """Section `[head]`: the output layer."""

    kind: str = option(
        "tied", "output layer: " + ", ".join(f'"{kind}"' for kind in _KINDS), choices=_KINDS
    )
    tied: bool = option(
        True,
        "share the labels (output embeddings) with the input embeddings (only mos, kerbs, "
        "drill-kerbs)",
    )
    depth: int = option(
        1, "number of layers of the label encoder (only drill, drill-kerbs)", minimum=1
    )
    units: int = option(
        0,
        "size of the joint space (dual), or of the hidden layer of the network (described); 0: "
        "embedding_dim",
        minimum=0,
    )
    activation: str = option(
        "relu",
        "activation of the label encoder, by its name in Keras (only drill, drill-kerbs, dual, "
        "described)",
        choices=_ACTIVATIONS,
    )
    dropout: float = option(
        0.0,
        "dropout rate inside the label encoder (only drill, drill-kerbs, described)",
        minimum=0,
        below=1,
    )
    variational_dropout: bool = option(
        False, "use the same dropout mask for all words (only drill, drill-kerbs)"
    )
    residual_to_input: bool = option(
        True,
        "add the word embedding to the output of each layer (drill, drill-kerbs), or to the "
        "label (described)",
    )
    residual_to_previous: bool = option(
        False,
        "add the previous layer's output to the output of each layer (only drill, drill-kerbs)",
    )
    encode_hidden: bool = option(
        False,
        "apply a second network of the same kind to the hidden states (only drill, drill-kerbs)",
    )
    learning_rate_multiplier: float = option(
        1.0,
        "learning rate of the label encoder, as a multiple of optimizer.learning_rate (only "
        "bilinear, dual, drill, described, drill-kerbs)",
        above=0,
    )
    descriptions: str = option(
        "",
        'word vectors from which labels are computed: a text file, or "encoder:" and a preset '
        "or a folder of keras-hub (only described)",
    )
    embedding_dropout: float = option(
        0.0,
        "share of the words whose embedding is dropped in a training step (only described)",
        minimum=0,
        below=1,
    )
    num_mixtures: int = option(15, "number of softmaxes in the mixture (only mos)", minimum=1)
    context_dim: int = option(
        0,
        "size of the context vectors of the softmaxes, and of untied labels; 0: embedding_dim "
        "(only mos)",
        minimum=0,
    )
    context_dropout: float = option(
        0.0, "dropout rate on the context vectors (only mos)", minimum=0, below=1
    )
    use_bias: bool = option(True, "add a bias to the logits: one per word, or one per sense")
    logit_soft_cap: float = option(
        0.0, "bound on the logits, which become cap·tanh(logit/cap); 0: no bound", minimum=0
    )
    z_loss: float = option(
        0.0, "weight of the squared log-normalizer of the softmax in the loss", minimum=0
    )
    label_smoothing: float = option(
        0.0,
        "label smoothing: share of the probability that is distributed over all words",
        minimum=0,
        below=1,
    )
    tile_size: int = option(
        0,
        "number of tokens whose logits are computed at a time in the loss; 0: chosen by the "
        "available memory",
        minimum=0,
    )

    @property
    def has_senses(self) -> bool:
        """Whether the output layer has several senses per word, which `[senses]` describes."""
        return self.kind in ("kerbs", "drill-kerbs")

    @property
    def shares_embedding(self) -> bool:
        """Whether the labels are computed from the input embeddings."""
        if self.kind == "mos" or self.has_senses:
            return self.tied
        if self.kind == "described":
            return self.residual_to_input
        return self.kind != "softmax"


@dataclasses.dataclass(frozen=True)
class SensesConfig:
    """Section `[senses]`: number of senses, their scores, and their reallocation."""

    per_word: float = option(
        3.0,
        "mean number of senses per word; section [senses] is only for kerbs and drill-kerbs",
        minimum=1,
    )
    min_senses: int = option(1, "minimum number of senses of a word", minimum=1)
    max_senses: int = option(4, "maximum number of senses of a word", minimum=1)
    variant: str = option(
        "paper",
        'kernel that scores senses: "paper", "reference" (code of the paper\'s authors), or '
        '"inner_product" (no kernel)',
        choices=("paper", "reference", "inner_product"),
    )
    weighting: str = option(
        "posterior",
        'weights of the senses in a tied input embedding: "posterior", given the context (only '
        'kerbs), or "usage", which is faster',
        choices=("posterior", "usage"),
    )
    start: str = option(
        "random",
        'initial senses of a word: "random", or "copies" of one embedding',
        choices=("random", "copies"),
    )
    usage: str = option(
        "posterior",
        'measure of the use of a sense: its "posterior" probability given the word, or its own '
        '"probability" (as in the paper)',
        choices=("posterior", "probability"),
    )
    dynamic: bool = option(
        True, "move little-used senses to words that need more senses during training"
    )
    policy: str = option(
        "ranking",
        'rule by which senses move: "threshold" (paper), "ranking" (code of the authors), or '
        '"idle"',
        choices=("threshold", "ranking", "idle"),
    )
    threshold: float = option(
        -7.0,
        "words with a mean log-probability below this value receive a sense (only threshold)",
        maximum=0,
    )
    ratio: float = option(
        0.005,
        "maximum number of senses to move at a time, as a share of the vocabulary size (only "
        "ranking)",
        above=0,
        maximum=1,
    )
    idle_share: float = option(
        0.1,
        "senses with less than this share of their word's usage may move (only idle)",
        above=0,
        below=0.5,
    )
    interval: int = option(100, "number of training steps between moves of senses", minimum=1)
    momentum: float = option(
        0.1,
        "weight of new values in the running means of usage and log-probability",
        above=0,
        maximum=1,
    )
    moved_embedding: str = option(
        "keep",
        'embedding of a sense that moved: "keep" the old one, or start "near" the most used '
        "sense of the new word",
        choices=("keep", "near"),
    )


def describe_head(options: HeadConfig, senses: SensesConfig) -> str:
    """Describes the output layer in a few words."""
    drill = f"DRILL, depth {options.depth}, {options.activation}"
    per_word = f"{senses.per_word:g} senses per word" + ("" if senses.dynamic else ", fixed")
    return {
        "softmax": "softmax",
        "tied": "tied softmax",
        "bilinear": "bilinear",
        "dual": f"dual nonlinear, {options.activation}",
        "drill": drill,
        "described": f"labels from {_describe_source(options.descriptions)}",
        "mos": f"mixture of {options.num_mixtures} softmaxes",
        "kerbs": f"KerBS, {per_word}",
        "drill-kerbs": f"KerBS, {per_word}, over {drill}",
    }[options.kind]


def _describe_source(source: str) -> str:
    kind, colon, preset = source.partition(":")
    if colon and kind == "encoder":
        return f"vectors of {PurePath(preset).name}"
    return f"vectors in {PurePath(source).name}"
