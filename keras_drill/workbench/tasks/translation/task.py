"""The task of translation."""

from collections.abc import Sequence

from keras_drill.data import Lines, ParallelCorpus
from keras_drill.data.parallel_text import cut_by_target
from keras_drill.workbench.tasks.sequence_to_sequence.task import SequenceToSequenceTask
from keras_drill.workbench.tasks.translation.config import TranslationConfig


class TranslationTask(SequenceToSequenceTask):
    """Task of translation. Pairs are read from two text files per split, or from TSV files."""

    config: TranslationConfig

    def read_corpus(self, data: str, cut_by_content: bool) -> dict[str, dict[str, Lines]]:
        options = self.config.data
        splits = ParallelCorpus(data, options.source or None, options.target or None).splits
        if cut_by_content and len(splits) == 1:
            splits = cut_by_target(splits["train"])
        return {
            name: {"source": pairs.source, "target": pairs.target} for name, pairs in splits.items()
        }

    def read_whole_corpus(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        source, target = self.config.data.source or None, self.config.data.target or None
        ends = [path.removesuffix(".gz").rpartition(".")[2] for path in data]
        path = data[0] if len(data) == 1 else data
        if source and ends == [target, source]:  # the names tell the files apart
            path = data[::-1]
        splits = ParallelCorpus(path, source, target, split=False).splits
        return {
            name: {"source": pairs.source, "target": pairs.target} for name, pairs in splits.items()
        }
