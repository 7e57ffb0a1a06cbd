"""Options of output layers whose words have several senses."""

import dataclasses

from keras_drill.training.config.option import option


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
