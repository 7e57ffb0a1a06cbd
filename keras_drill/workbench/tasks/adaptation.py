"""Settings of a language model that adapts to the evaluated text while reading it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Adaptation:
    """Settings of dynamic evaluation, of a neural cache, or of both.

    In dynamic evaluation, the model is trained on each segment of the text after predicting it. A
    neural cache makes words more probable that followed similar contexts. Parameters that are
    `None` are chosen on validation text.

    Args:
        rule: Update rule of dynamic evaluation, "rms" or "sgd"; `None` for no dynamic evaluation.
        learning_rate: Learning rate of dynamic evaluation.
        decay: Decay towards the trained weights in dynamic evaluation.
        length: Number of tokens in a segment of dynamic evaluation.
        rows: Number of parts of the text that are read in parallel.
        has_cache: Whether to use a neural cache.
        cache_size: Number of hidden states in the cache, the last ones.
        cache_theta: Factor on the similarity of hidden states; 0 weighs all states equally.
        cache_weight: Share of the cache in the probabilities, from 0 to 1.
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
