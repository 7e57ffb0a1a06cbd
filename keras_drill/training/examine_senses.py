"""The senses that a run has found."""

import difflib
import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_drill.analysis import words_by_senses
from keras_drill.ready_made import KernelizedBayesianSoftmax
from keras_drill.report import SenseStudy, describe_environment, write_senses
from keras_drill.tasks.errors import RunError
from keras_drill.training.loaded_run import LoadedRun
from keras_drill.training.run_folder import RunFolder
from keras_drill.training.sense_study import kernels, study_tables, study_word, times
from keras_drill.training.shown_senses import TextOfSenses

_FEWEST_OCCURRENCES = 3  # that make a plane
_DEFAULT_WORDS = 4
_EXAMPLES = 12  # words shown for a number of senses
_WIDTH = 8  # words on either side of a context


def examine_senses(
    folder: RunFolder,
    report: str | os.PathLike,
    words: Sequence[str] = (),
    data: str | None = None,
    split: str = "train",
    tokens: int = 200_000,
    nearest: int = 5,
    contexts: int = 3,
    checkpoint: int | str | None = None,
) -> SenseStudy:
    """Shows the senses of words in a text, on the terminal and on a page.

    Args:
        folder: A run with several senses a word.
        report: The HTML file.
        words: The words; by default the most frequent of those with the most senses.
        data: The text; by default that of the run.
        split: "train", "valid" or "test".
        tokens: How much of the text to read, from its beginning.
        nearest: How many nearest words to show for a sense.
        contexts: How many contexts to show for a sense.
        checkpoint: As of `LoadedRun.load`.
    """
    run = LoadedRun.load(folder, checkpoint)
    head = run.model.head
    if not isinstance(head, KernelizedBayesianSoftmax):
        raise RunError(
            f"{folder.path} has one sense per word: its output layer is {run.config.output_layer}"
        )
    vocabulary = run.words.tokens
    by_senses = words_by_senses(
        keras.ops.convert_to_numpy(head.allocation.sense_to_word), len(vocabulary)
    )
    chosen = [_word_id(run, word) for word in words] or _default_words(run, by_senses)
    read, text = _read(run, data, split, tokens)
    shown = TextOfSenses(run, read, _WIDTH)
    _check_occurrences(run, shown.ids, chosen, text)
    study = SenseStudy(
        name=folder.name,
        output_layer=run.config.output_layer,
        text=text,
        by_senses={
            senses: (len(some), tuple(vocabulary[id] for id in _by_count(run, some)[:_EXAMPLES]))
            for senses, some in by_senses.items()
        },
        words=tuple(
            study_word(head, vocabulary, senses, shown.examples(senses, contexts), nearest)
            for senses in shown.read(chosen)
        ),
        **kernels(head),
    )
    path = write_senses(report, study, describe_environment(seed=run.config.training.seed))
    print(study_tables(study))
    print(f"\nreport: {path}")
    return study


def _read(run: LoadedRun, data: str | None, split: str, tokens: int) -> tuple[Any, str]:
    """The beginning of a text, and what it is."""
    texts = run.task.read_texts(run.words, data)
    if split not in texts:
        path = run.config.data.path if data is None else data
        raise RunError(f"{path} has no {split} text; it has {', '.join(texts)}")
    whole = len(run.task.target_ids(texts[split]))
    text = run.task.first_tokens(texts[split], tokens)
    read = len(run.task.target_ids(text))
    part = "" if read == whole else f"the first {read:,} of "
    return text, f"{part}the {whole:,} tokens of the {split} text"


def _word_id(run: LoadedRun, word: str) -> int:
    vocabulary = run.words.tokens
    if word not in vocabulary:
        close = difflib.get_close_matches(word, vocabulary, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise RunError(f"{word!r} is not among the words of {run.folder.path}{hint}")
    return vocabulary.index(word)


def _by_count(run: LoadedRun, ids: np.ndarray) -> np.ndarray:
    """Words, the most frequent in training first."""
    if run.words.counts is None:
        return ids
    return ids[np.argsort(-np.array(run.words.counts)[ids], kind="stable")]


def _default_words(run: LoadedRun, by_senses: dict[int, np.ndarray]) -> list[int]:
    words: list[int] = []
    for senses in sorted(by_senses, reverse=True):
        some = _by_count(run, by_senses[senses]).tolist()
        words += [id for id in some if id not in run.words.special_ids]
        if len(words) >= _DEFAULT_WORDS:
            break
    return words[:_DEFAULT_WORDS]


def _check_occurrences(run: LoadedRun, ids: np.ndarray, words: Sequence[int], text: str) -> None:
    for word in words:
        number = int(np.count_nonzero(ids == word))
        if number < _FEWEST_OCCURRENCES:
            raise RunError(
                f"{run.words.tokens[word]!r} occurs {times(number)} in {text}, and at least "
                f"{_FEWEST_OCCURRENCES} times are needed: read more with --tokens, another text "
                "with --split or --data, or look at another word"
            )
