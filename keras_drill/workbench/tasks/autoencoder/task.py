"""The task of autoencoders."""

from collections.abc import Sequence

from keras_drill.data import Corpus, Lines
from keras_drill.data.content_splits import text_splits
from keras_drill.workbench.tasks.autoencoder.config import AutoencoderConfig
from keras_drill.workbench.tasks.sequence_to_sequence.task import SequenceToSequenceTask


class AutoencoderTask(SequenceToSequenceTask):
    """Task of autoencoders. Each line is a source and its own target."""

    config: AutoencoderConfig

    def read_corpus(self, data: str, cut_by_content: bool) -> dict[str, dict[str, Lines]]:
        splits = text_splits(data) if cut_by_content else Corpus(data).splits
        return {name: {"source": lines, "target": lines} for name, lines in splits.items()}

    def read_whole_corpus(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        splits = Corpus(data[0] if len(data) == 1 else data, split=False).splits
        return {name: {"source": lines, "target": lines} for name, lines in splits.items()}
