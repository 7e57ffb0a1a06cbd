"""Senses that were induced from contexts, and their folder."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_drill.data.atomic import replace_file, replaced_file
from keras_drill.models.language_model import LanguageModel
from keras_drill.workbench.analysis import WordSenses, words_by_senses
from keras_drill.workbench.report import SenseStudy, describe_environment, write_senses
from keras_drill.workbench.sense_induction.word_contexts import WordContext
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.sense_study import (
    Example,
    kernels,
    study_tables,
    study_word,
    times,
)

FILE = "induced-senses.json"
_FEWEST_CONTEXTS = 3  # points that a projection to a plane needs
_EXAMPLES = 12  # example words shown for each number of senses
_WIDTH = 8  # words shown on either side of an occurrence


@dataclasses.dataclass(frozen=True)
class InducedSenses:
    """A model that maps an encoder's states to senses, and the contexts that it was trained on.

    The chosen words are the words whose senses were induced. `save` writes a folder with the files
    `model.keras`, `states.npz` (the encoder's states) and `induced-senses.json` (all other
    attributes).

    Args:
        model: A `LanguageModel` that maps states to words: a `ContextSpace`, then a KerBS head.
        vocabulary: The words that the model predicts, the chosen words first.
        contexts: The contexts of each chosen word.
        states: The encoder's states of these contexts, `[n, D]` for each chosen word.
        facts: The names of the `encoder` and of the `text`, and the `seed`.
    """

    model: LanguageModel
    vocabulary: tuple[str, ...]
    contexts: Mapping[str, Sequence[WordContext]]
    states: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]

    def save(self, folder: str | os.PathLike) -> None:
        """Writes model, states and other attributes to a folder."""
        path = Path(folder)
        with replaced_file(path / "model.keras") as beside:
            self.model.save(beside)
        with replaced_file(path / "states.npz") as beside:
            np.savez(beside, *self.states.values())
        content = {
            **self.facts,
            "vocabulary": self.vocabulary,
            "contexts": {word: list(map(list, some)) for word, some in self.contexts.items()},
        }
        replace_file(path / FILE, json.dumps(content, ensure_ascii=False, indent=1))

    @classmethod
    def load(cls, folder: str | os.PathLike) -> "InducedSenses":
        """Loads a folder that `save` wrote.

        Raises:
            RunError: The folder has no induced senses.
        """
        path = Path(folder)
        if not (path / FILE).is_file():
            raise RunError(
                f"{folder} has no induced senses: it has no file {FILE}; give a folder of "
                "`keras-drill induce-senses`"
            )
        facts = json.loads((path / FILE).read_text(encoding="utf-8"))
        vocabulary, contexts = facts.pop("vocabulary"), facts.pop("contexts")
        with np.load(path / "states.npz", allow_pickle=False) as states:
            return cls(
                keras.saving.load_model(path / "model.keras", compile=False, safe_mode=True),
                tuple(vocabulary),
                {word: [WordContext(*one) for one in some] for word, some in contexts.items()},
                dict(
                    zip(contexts, (states[f"arr_{n}"] for n in range(len(contexts))), strict=True)
                ),
                facts,
            )

    def senses_of(self, word: str) -> WordSenses:
        """Computes the probabilities of a chosen word's senses in each of its contexts."""
        head, id = self.model.head, self.vocabulary.index(word)
        hidden = self.model.backbone(self.states[word])
        posteriors = head.sense_posteriors(hidden, np.full(len(self.states[word]), id))
        table = keras.ops.convert_to_numpy(head.allocation.senses_of_word)[id]
        senses = table[table >= 0]
        return WordSenses(
            id,
            senses,
            np.arange(len(self.states[word])),
            keras.ops.convert_to_numpy(hidden),
            keras.ops.convert_to_numpy(posteriors)[:, : len(senses)],
        )

    def examine(
        self,
        name: str,
        report: str | os.PathLike,
        words: Sequence[str] = (),
        nearest: int = 5,
        contexts: int = 3,
    ) -> SenseStudy:
        """Shows the senses of chosen words, on the terminal and on an HTML page.

        Args:
            name: Name of the induced senses on the page.
            report: Path of the HTML file.
            words: Words to show, by default all chosen words.
            nearest: Number of nearest words to show for each sense.
            contexts: Number of contexts to show for each sense.

        Returns:
            The data of the page.
        """
        words = tuple(words or self.contexts)
        for word in words:
            found = len(self.contexts.get(word, ()))
            if found < _FEWEST_CONTEXTS:
                raise RunError(
                    f"{word!r} has no induced senses; choose among {', '.join(self.contexts)}"
                    if word not in self.contexts
                    else f"{word!r} occurs {times(found)} in {self.facts['text']}, and at least "
                    f"{_FEWEST_CONTEXTS} times are needed"
                )
        head = self.model.head
        of_word = keras.ops.convert_to_numpy(head.allocation.sense_to_word)
        study = SenseStudy(
            name=name,
            output_layer=f"KerBS on contexts of {self.facts['encoder']}",
            text=str(self.facts["text"]),
            by_senses={
                senses: (len(some), tuple(self.vocabulary[id] for id in some[:_EXAMPLES]))
                for senses, some in words_by_senses(of_word, len(self.vocabulary)).items()
            },
            words=tuple(
                study_word(
                    head, self.vocabulary, senses, self._examples(word, senses, contexts), nearest
                )
                for word in words
                for senses in [self.senses_of(word)]
            ),
            **kernels(head),
        )
        environment = describe_environment(seed=self.facts["seed"])
        path = write_senses(report, study, environment)
        print(study_tables(study))
        print(f"\nreport: {path}")
        return study

    def _examples(self, word: str, senses: WordSenses, k: int) -> list[list[Example]]:
        """Returns for each sense up to `k` different contexts in which it is the most probable."""
        examples: list[list[Example]] = []
        for place in range(len(senses.senses)):
            mine = np.flatnonzero(senses.most_probable == place)
            order = mine[np.argsort(-senses.posteriors[mine, place], kind="stable")]
            shown: dict[tuple[str, str], float] = {}
            for number in order:
                if len(shown) == k:
                    break
                before, _, after = self.contexts[word][number]
                text = " ".join(before.split()[-_WIDTH:]), " ".join(after.split()[:_WIDTH])
                shown.setdefault(text, float(senses.posteriors[number, place]))
            examples.append([(*text, probability) for text, probability in shown.items()])
        return examples
