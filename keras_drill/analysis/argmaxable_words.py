"""Which words can be the most probable one."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class ArgmaxableWords:
    """What is proven about which words can be the most probable one, word by word.

    Every word is in exactly one of the four sets. Made by
    `keras_drill.analysis.find_argmaxable_words`.

    Args:
        on_text: Words that were the most probable one somewhere in a text, `[V]` bool.
        found: Other words for which a hidden state was found where they are, `[V]` bool.
        unargmaxable: Words that are proven never to be, `[V]` bool.
        undecided: Words of which neither is proven, `[V]` bool.
        bound: Largest absolute value of a component of the hidden states that were searched;
            `None` when none were.
        min_lead: By how much a word must be ahead of all others, in nats.
    """

    on_text: np.ndarray
    found: np.ndarray
    unargmaxable: np.ndarray
    undecided: np.ndarray
    bound: float | None
    min_lead: float

    def counts(self) -> dict[str, int]:
        """Size of every set, by its name."""
        names = ("on_text", "found", "unargmaxable", "undecided")
        return {name: int(getattr(self, name).sum()) for name in names}
