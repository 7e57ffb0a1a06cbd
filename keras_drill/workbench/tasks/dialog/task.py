"""The task of dialog models."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from keras_drill.data import DialogCorpus, Lines, PairBatches, ParallelCorpus
from keras_drill.data.content_splits import text_splits
from keras_drill.data.tfds_pairs import PREFIX
from keras_drill.workbench.tasks.dialog.config import DialogConfig
from keras_drill.workbench.tasks.sequence_to_sequence.task import (
    EncodedPairs,
    SequenceToSequenceTask,
)


class DialogTask(SequenceToSequenceTask):
    """Task of dialog models. The source is the previous turns, the target is the response."""

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

    def training_batches(self, run_vocabulary: Any, text: EncodedPairs) -> PairBatches:
        longest = self.config.data.max_length
        cut = self.truncate_sources(run_vocabulary, text, longest)
        if cut is not text:
            number = int((text.source.line_lengths > longest).sum())
            print(
                f"keras-drill: warning: {number:,} of {len(text.source.line_lengths):,} training "
                f"contexts are longer than data.max_length = {longest} tokens, and lose their "
                "oldest turns",
                file=sys.stderr,
            )
        return super().training_batches(run_vocabulary, cut)


def _columns(corpus: DialogCorpus | ParallelCorpus) -> dict[str, dict[str, Lines]]:
    return {
        name: {"source": pairs.source, "target": pairs.target}
        for name, pairs in corpus.splits.items()
    }
