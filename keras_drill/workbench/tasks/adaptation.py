"""Settings for the adaptation of a language model to the text on which it is evaluated."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Adaptation:
    """Dynamic evaluation, a neural cache, or both, with their parameters.

    Parameters that are `None` are chosen on validation text.

    Args:
        rule: "rms" or "sgd", the update of dynamic evaluation; `None` for none.
        learning_rate: Learning rate of dynamic evaluation.
        decay: Decay towards the trained weights in dynamic evaluation.
        length: Number of tokens of a segment, after which the weights are updated.
        rows: Number of rows of text that are read in parallel.
        has_cache: Whether there is a neural cache.
        cache_size: Number of the last hidden states in the cache.
        cache_theta: Factor of the similarity of hidden states.
        cache_weight: Weight of the cache.
        search_tokens: Number of tokens of the validation text on which parameters are chosen.
    """

    rule: str | None = None
    learning_rate: float | None = None
    decay: float | None = None
    length: int = 5
    rows: int = 1
    has_cache: bool = False
    cache_size: int | None = None
    cache_theta: float | None = None
    cache_weight: float | None = None
    search_tokens: int = 10_000
