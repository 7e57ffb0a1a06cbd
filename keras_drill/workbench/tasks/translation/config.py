"""Options of the task of translation."""

import dataclasses
from typing import ClassVar

from keras_drill.workbench.tasks.config.option import option
from keras_drill.workbench.tasks.sequence_to_sequence.config import SequenceToSequenceConfig
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig


@dataclasses.dataclass(frozen=True)
class TranslationDataConfig(PairsConfig):
    """Section `[data]`: text, vocabulary and batches."""

    source: str = option(
        "de", "language of the sources, as in the extension of their files; empty for .tsv files"
    )
    target: str = option("en", "language of the targets, as in the extension of their files")


@dataclasses.dataclass(frozen=True)
class TranslationConfig(SequenceToSequenceConfig):
    """Options of a translation model."""

    task: ClassVar[str] = "translation"

    data: TranslationDataConfig = dataclasses.field(default_factory=TranslationDataConfig)
