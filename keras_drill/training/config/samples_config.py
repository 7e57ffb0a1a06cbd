"""Options of the texts that the model writes for the report."""

import dataclasses

from keras_drill.training.config.option import option


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
    temperature: float = option(0.8, "less: safer words (not greedy)", minimum=0, may_change=True)
    k: int = option(40, "choose among so many words (top-k)", minimum=1, may_change=True)
    p: float = option(0.9, "choose among this much probability (top-p)", minimum=0, may_change=True)
    seed: int = option(0, "another seed, another text", minimum=0, may_change=True)
