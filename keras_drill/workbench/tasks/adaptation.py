"""How a language model adapts to a text while it is evaluated on it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Adaptation:
    """Dynamic evaluation, a neural cache, or both, with their parameters.

    Parameters that are `None` are chosen on validation text.

    Args:
        rule: "rms" or "sgd", the update of dynamic evaluation; `None` for none.
        learning_rate: Of dynamic evaluation.
        decay: Of dynamic evaluation, towards the trained weights.
        length: Tokens of a segment, after which the weights are updated.
        rows: Rows of text that are read side by side.
        has_cache: Whether there is a neural cache.
        cache_size: How many of the last hidden states it holds.
        cache_theta: How much more similar hidden states count.
        cache_weight: Share of the cache.
        search_tokens: How many tokens of the validation text parameters are chosen on.
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
