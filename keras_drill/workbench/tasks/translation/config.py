"""Options of a translation run."""

import dataclasses
from typing import ClassVar

from keras_drill.workbench.tasks.config.option import option
from keras_drill.workbench.tasks.sequence_to_sequence.config import (
    PairsConfig,
    SequenceToSequenceConfig,
)


@dataclasses.dataclass(frozen=True)
class TranslationDataConfig(PairsConfig):
    """Section `[data]`: text, vocabulary and batches."""

    source: str = option(
        "de", "the sources' language, the end of their files' names; empty for .tsv"
    )
    target: str = option("en", "the targets' language")


@dataclasses.dataclass(frozen=True)
class TranslationConfig(SequenceToSequenceConfig):
    """Options of a run whose model translates."""

    task: ClassVar[str] = "translation"

    data: TranslationDataConfig = dataclasses.field(default_factory=TranslationDataConfig)
