"""Translation: a source in one language, a target in another."""

from collections.abc import Mapping

from keras_drill.data import ParallelCorpus, ParallelText
from keras_drill.tasks.sequence_to_sequence.task import SequenceToSequenceTask
from keras_drill.tasks.translation.config import TranslationConfig


class TranslationTask(SequenceToSequenceTask):
    """Pairs come from two text files a split, or from columns."""

    config: TranslationConfig

    def read_pairs(self, data: str) -> Mapping[str, ParallelText]:
        options = self.config.data
        return ParallelCorpus(data, options.source or None, options.target or None).splits
