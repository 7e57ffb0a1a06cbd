"""Options of the task of dialog models, which respond to the previous turns of a dialogue."""

import dataclasses
from typing import ClassVar

from keras_drill.workbench.tasks.config.option import option
from keras_drill.workbench.tasks.sequence_to_sequence.config import SequenceToSequenceConfig
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig


@dataclasses.dataclass(frozen=True)
class DialogDataConfig(PairsConfig):
    """Section `[data]`: dialogues, vocabulary and batches."""

    path: str = option(
        "",
        'a folder with train, valid and test dialogues, one per line; or "tfds:" and the name '
        "of a data set of contexts and responses",
        may_change=True,
    )
    turn_end: str = option("__eou__", "the mark after each turn of a dialogue")
    context_turns: int = option(
        1, "maximum number of previous turns in the source of a response", minimum=1
    )
    drop_repeated: bool = option(
        True, "drop training dialogues that are also in the valid or test text"
    )

    @property
    def symbols(self) -> tuple[str, ...]:
        own = (self.turn_end,) if self.context_turns > 1 else ()
        return tuple(dict.fromkeys([*own, *self.user_defined_symbols]))

    @property
    def truncation_side(self) -> str:
        return "left"  # the response is to the last turn

    @property
    def turn_separator(self) -> str | None:
        return self.turn_end if self.context_turns > 1 else None


@dataclasses.dataclass(frozen=True)
class DialogConfig(SequenceToSequenceConfig):
    """Options of a dialog model."""

    task: ClassVar[str] = "dialog"

    data: DialogDataConfig = dataclasses.field(default_factory=DialogDataConfig)
