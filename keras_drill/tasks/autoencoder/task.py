"""Autoencoders: each line is its own target."""

from collections.abc import Mapping

from keras_drill.data import Corpus, ParallelText
from keras_drill.tasks.autoencoder.config import AutoencoderConfig
from keras_drill.tasks.sequence_to_sequence.task import SequenceToSequenceTask


class AutoencoderTask(SequenceToSequenceTask):
    """Pairs are lines of a text, twice."""

    config: AutoencoderConfig

    def read_pairs(self, data: str) -> Mapping[str, ParallelText]:
        return {name: ParallelText(lines, lines) for name, lines in Corpus(data).splits.items()}
