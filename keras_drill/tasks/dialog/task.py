"""Dialog: the turns before it are the source of a response."""

from collections.abc import Mapping

from keras_drill.data import DialogCorpus, ParallelText
from keras_drill.tasks.dialog.config import DialogConfig
from keras_drill.tasks.sequence_to_sequence.task import SequenceToSequenceTask


class DialogTask(SequenceToSequenceTask):
    """Pairs are a context and a response."""

    config: DialogConfig

    def read_pairs(self, data: str) -> Mapping[str, ParallelText]:
        options = self.config.data
        corpus = DialogCorpus(
            data,
            turn_end=options.turn_end,
            context_turns=options.context_turns,
            separator=options.turn_end,
            drop_repeated=options.drop_repeated,
        )
        return corpus.splits
