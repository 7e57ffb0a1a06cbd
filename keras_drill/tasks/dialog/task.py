"""Dialog: the turns before it are the source of a response."""

from keras_drill.data import DialogCorpus, Lines, ParallelCorpus
from keras_drill.data.content_splits import text_splits
from keras_drill.data.tfds_pairs import PREFIX
from keras_drill.tasks.dialog.config import DialogConfig
from keras_drill.tasks.sequence_to_sequence.task import SequenceToSequenceTask


class DialogTask(SequenceToSequenceTask):
    """Pairs are a context and a response."""

    config: DialogConfig

    def read_corpus(self, data: str, cut_by_content: bool) -> dict[str, dict[str, Lines]]:
        options = self.config.data
        corpus: DialogCorpus | ParallelCorpus
        if data.startswith(PREFIX):
            corpus = ParallelCorpus(data)
        else:
            corpus = DialogCorpus(
                text_splits(data) if cut_by_content else data,
                turn_end=options.turn_end,
                context_turns=options.context_turns,
                separator=options.turn_end,
                drop_repeated=options.drop_repeated,
            )
        return {
            name: {"source": pairs.source, "target": pairs.target}
            for name, pairs in corpus.splits.items()
        }
