"""Where a text shows the senses of a run's words."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_drill.export.sense_contexts import SenseContexts
from keras_drill.workbench.analysis import WordSenses, collect_word_senses, example_contexts
from keras_drill.workbench.training.loaded_run import LoadedRun

_TOKENS = 100_000  # whose hidden states fit in memory with any model
_MOST_WORDS = 5000
_WIDTH = 6

Example = tuple[str, str, float]


class TextOfSenses:
    """A text, read by a model whose words have senses.

    Args:
        run: The run with the model.
        text: A text of its task, encoded.
        width: Words on either side that are shown of it.
    """

    def __init__(self, run: LoadedRun, text: Any, width: int):
        self.run = run
        self.ids = run.task.target_ids(text)
        self.width = width
        self._batches = run.task.evaluation_batches(run.vocabulary, text)
        self._order = run.task.target_places(run.vocabulary, text)

    def read(self, words: Sequence[int]) -> list[WordSenses]:
        """All occurrences of words."""
        return collect_word_senses(self.run.model, self._batches.dataset(), words)

    def examples(self, senses: WordSenses, k: int) -> list[list[Example]]:
        """Of each sense of a word, the occurrences where it is the most probable: the text before
        them and after them, and the probability of the sense, the highest first."""
        positions = self._order[senses.places]
        return [
            [
                (
                    self._shown(position - self.width, position),
                    self._shown(position + 1, position + 1 + self.width),
                    probability,
                )
                for position, probability in example_contexts(
                    self.ids, positions[mine], senses.posteriors[mine, place], k, self.width
                )
            ]
            for place in range(len(senses.senses))
            for mine in [senses.most_probable == place]
        ]

    def _shown(self, start: int, stop: int) -> str:
        tokens = self.run.vocabulary.tokens
        return " ".join(tokens[id] for id in self.ids[max(start, 0) : stop])


def contexts_for_export(run: LoadedRun, k: int, data: str | None = None) -> SenseContexts:
    """Examples of the senses of the most frequent words that have several, for servers to show.

    Args:
        run: A run with several senses a word.
        k: Most examples of a sense.
        data: Where the training text is; `None` is the corpus of the run.
    """
    texts = run.task.read_texts(run.vocabulary, data)
    text = TextOfSenses(run, run.task.first_tokens(texts["train"], _TOKENS), _WIDTH)
    allocation = run.model.head.allocation
    of_word = keras.ops.convert_to_numpy(allocation.sense_to_word)
    several = np.bincount(of_word, minlength=len(run.vocabulary.tokens)) > 1
    seen = np.bincount(text.ids, minlength=len(several)) * several
    words = np.argsort(-seen, kind="stable")[: min(_MOST_WORDS, np.count_nonzero(seen))]
    examples: list[list[Example]] = [[] for _ in of_word]
    for senses in text.read(words.tolist()):
        for sense, some in zip(senses.senses, text.examples(senses, k), strict=True):
            examples[sense] = some
    return SenseContexts(examples)
