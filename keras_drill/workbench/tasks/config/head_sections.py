"""Options of the output layer, for all tasks."""

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

    kind: str = option("tied", ", ".join(f'"{kind}"' for kind in _KINDS), choices=_KINDS)
    tied: bool = option(
        True, "labels are the embeddings of the words that are read (mos, kerbs, drill-kerbs)"
    )
    depth: int = option(1, "layers of the label encoder (drill, drill-kerbs)", minimum=1)
    units: int = option(
        0,
        "size of the joint space (dual), or of the network (described); 0: embedding_dim",
        minimum=0,
    )
    activation: str = option(
        "relu", "any Keras activation (drill, drill-kerbs, dual, described)", choices=_ACTIVATIONS
    )
    dropout: float = option(
        0.0, "dropout inside the label encoder (drill, drill-kerbs, described)", minimum=0, below=1
    )
    variational_dropout: bool = option(False, "one dropout mask for all words (drill, drill-kerbs)")
    residual_to_input: bool = option(
        True, "add the embedding after each layer (drill, drill-kerbs), or to the label (described)"
    )
    residual_to_previous: bool = option(
        False, "add the layer before after each layer (drill, drill-kerbs)"
    )
    encode_hidden: bool = option(False, "the same network on the hidden side (drill, drill-kerbs)")
    learning_rate_multiplier: float = option(
        1.0,
        "the label encoder's steps, as a multiple of the learning rate (bilinear, dual, drill, "
        "described, drill-kerbs)",
        above=0,
    )
    descriptions: str = option(
        "",
        'vectors of words: a text file, or "encoder:" and a preset of keras-hub or its folder '
        "(described)",
    )
    embedding_dropout: float = option(
        0.0, "share of the words whose embedding a step leaves out (described)", minimum=0, below=1
    )
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
        """Whether words have several senses, so that section `[senses]` applies."""
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
    start: str = option(
        "random",
        'the senses of a word begin at "random", or as "copies" of one embedding',
        choices=("random", "copies"),
    )
    usage: str = option(
        "posterior",
        'how much a sense is used: its "posterior" given the word, or its "probability" (the '
        "paper's)",
        choices=("posterior", "probability"),
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
