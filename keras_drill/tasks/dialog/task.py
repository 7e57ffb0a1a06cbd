"""Dialog: the turns before it are the source of a response."""

from collections.abc import Mapping, Sequence

from keras_drill.data import DialogCorpus, Lines, ParallelCorpus
from keras_drill.data.content_splits import text_splits
from keras_drill.data.tfds_pairs import PREFIX
from keras_drill.tasks.dialog.config import DialogConfig
from keras_drill.tasks.sequence_to_sequence.task import SequenceToSequenceTask


class DialogTask(SequenceToSequenceTask):
    """Pairs are a context and a response."""

    config: DialogConfig

    def read_corpus(self, data: str, cut_by_content: bool) -> dict[str, dict[str, Lines]]:
        if data.startswith(PREFIX):
            return _columns(ParallelCorpus(data))
        dialogues = text_splits(data) if cut_by_content else data
        return _columns(self._corpus(dialogues, drop_repeated=self.config.data.drop_repeated))

    def read_whole_corpus(self, data: Sequence[str]) -> dict[str, dict[str, Lines]]:
        path = data[0] if len(data) == 1 else data
        if data[0].startswith(PREFIX):
            return _columns(ParallelCorpus(path, split=False))
        return _columns(self._corpus(path, split=False))

    def _corpus(self, dialogues: str | Sequence[str] | Mapping, **options: bool) -> DialogCorpus:
        return DialogCorpus(
            dialogues,
            turn_end=self.config.data.turn_end,
            context_turns=self.config.data.context_turns,
            separator=self.config.data.turn_end,
            **options,
        )


def _columns(corpus: DialogCorpus | ParallelCorpus) -> dict[str, dict[str, Lines]]:
    return {
        name: {"source": pairs.source, "target": pairs.target}
        for name, pairs in corpus.splits.items()
    }
