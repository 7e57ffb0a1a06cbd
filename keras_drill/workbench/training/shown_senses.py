"""Finds examples in a text for the senses of a run's words."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_drill.export.sense_contexts import SenseContexts
from keras_drill.workbench.analysis import WordSenses, collect_word_senses, example_contexts
from keras_drill.workbench.training.loaded_run import LoadedRun

_TOKENS = 100_000  # so that their hidden states fit in memory with any model
_MOST_WORDS = 5000
_WIDTH = 6

Example = tuple[str, str, float]


class TextOfSenses:
    """Finds occurrences of words and examples of their senses in a text.

    Args:
        run: A run whose words have senses.
        text: An encoded text of the run's task.
        width: Number of words to show on either side of an occurrence.
    """

    def __init__(self, run: LoadedRun, text: Any, width: int):
        self.run = run
        self.ids = run.task.target_ids(text)
        self.width = width
        self._batches = run.task.evaluation_batches(run.vocabulary, text)
        self._order = run.task.target_places(run.vocabulary, text)

    def read(self, words: Sequence[int]) -> list[WordSenses]:
        """Collects all occurrences of words with the probabilities of their senses.

        Args:
            words: Ids of the words.
        """
        return collect_word_senses(self.run.model, self._batches.dataset(), words)

    def examples(self, senses: WordSenses, k: int) -> list[list[Example]]:
        """Finds examples of each sense: occurrences at which the sense is the most probable.

        Args:
            senses: Occurrences of a word, from `read`.
            k: Maximum number of examples of each sense.

        Returns:
            For each sense a list of examples, the highest probability first. An example is the text
            before the word, the text after the word, and the probability of the sense.
        """
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
    """Finds examples of the senses of words, to be stored in an exported model.

    The words are the most frequent words with several senses.

    Args:
        run: A run with several senses per word.
        k: Maximum number of examples of each sense.
        data: Path of the training text; `None` is the corpus of the run.
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
