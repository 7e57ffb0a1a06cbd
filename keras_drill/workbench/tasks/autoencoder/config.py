"""Options of the task of autoencoders."""

import dataclasses
from typing import ClassVar

from keras_drill.workbench.tasks.config.option import option
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.tasks.sequence_to_sequence.config import (
    EncoderDecoderConfig,
    SequenceToSequenceConfig,
)
from keras_drill.workbench.tasks.sequence_to_sequence.pairs_config import PairsConfig


@dataclasses.dataclass(frozen=True)
class LinesConfig(PairsConfig):
    """Section `[data]`: text, vocabulary and batches."""

    path: str = option(
        "", "a text file, or a folder with train, valid and test text", may_change=True
    )


@dataclasses.dataclass(frozen=True)
class AutoencoderConfig(SequenceToSequenceConfig):
    """Options of an autoencoder: an encoder–decoder that reconstructs its input line.

    By default, the decoder reads only the last state of the encoder, without attention.
    """

    task: ClassVar[str] = "autoencoder"

    data: LinesConfig = dataclasses.field(default_factory=LinesConfig)
    backbone: EncoderDecoderConfig = dataclasses.field(
        default_factory=lambda: EncoderDecoderConfig(attention="none")
    )

    def check(self) -> None:
        super().check()
        if not self.data.shared_vocabulary:
            raise ConfigError(
                "option data.shared_vocabulary must be true for an autoencoder, whose sources are "
                "also its targets. Received: false"
            )
        if not self.data.shares_tokenizer:
            raise ConfigError(
                "option data.moses must be one language for an autoencoder, whose sources are also "
                f"its targets. Received: {self.data.moses!r}"
            )
