"""Shows the senses that a run has learned, on the terminal and on an HTML page."""

import difflib
import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_drill.ready_made import KernelizedBayesianSoftmax
from keras_drill.workbench.analysis import words_by_senses
from keras_drill.workbench.report import SenseStudy, describe_environment, write_senses
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.choose_words import FEWEST_OCCURRENCES, choose_words
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.sense_study import kernels, study_tables, study_word, times
from keras_drill.workbench.training.shown_senses import TextOfSenses

_DEFAULT_WORDS = 4
_EXAMPLES = 12  # example words shown for each number of senses
_WIDTH = 8  # words shown on either side of an occurrence


def examine_senses(
    folder: RunFolder,
    report: str | os.PathLike,
    words: Sequence[str] = (),
    data: str | Sequence[str] | None = None,
    split: str | None = None,
    tokens: int = 200_000,
    nearest: int = 5,
    contexts: int = 3,
    checkpoint: int | str | None = None,
) -> SenseStudy:
    """Shows the senses of words in a text, on the terminal and on an HTML page.

    Args:
        folder: A run with several senses per word.
        report: Path of the HTML file.
        words: The words; by default the content words whose senses depend most on the context, see
            `choose_words`.
        data: Path or paths of the text, see `Task.read_whole`; by default the corpus of the run.
        split: "train", "valid" or "test"; by default the training text, or the first split of
            `data` if it has no training text.
        tokens: Number of tokens to read from the beginning of the text.
        nearest: Number of nearest words to show for each sense.
        contexts: Number of contexts to show for each sense.
        checkpoint: The checkpoint to load, see `LoadedRun.load`.

    Returns:
        The data of the page.
    """
    run = LoadedRun.load(folder, checkpoint)
    head = run.model.head
    if not isinstance(head, KernelizedBayesianSoftmax):
        raise RunError(
            "the run must have several senses per word, that is head.kind = 'kerbs' or "
            f"'drill-kerbs'. Received: {folder.path}, whose output layer is "
            f"{run.config.output_layer}"
        )
    vocabulary = run.vocabulary.tokens
    of_word = keras.ops.convert_to_numpy(head.allocation.sense_to_word)
    by_senses = words_by_senses(of_word, len(vocabulary))
    chosen = [_word_id(run, word) for word in words]
    read, text = _read(run, data, split, tokens)
    shown = TextOfSenses(run, read, _WIDTH)
    if chosen:
        _check_occurrences(run, shown.ids, chosen, text)
        found = shown.read(chosen)
    else:
        num_senses = np.bincount(of_word, minlength=len(vocabulary))
        found = choose_words(run, shown, num_senses, _DEFAULT_WORDS)
        if not found:
            raise RunError(
                f"no word occurs at least {FEWEST_OCCURRENCES} times in {text}: read more with "
                "--tokens, or another text with --split or --data"
            )
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
            for senses in found
        ),
        **kernels(head),
    )
    path = write_senses(report, study, describe_environment(seed=run.config.training.seed))
    print(study_tables(study))
    print(f"\nreport: {path}")
    return study


def _read(
    run: LoadedRun, data: str | Sequence[str] | None, split: str | None, tokens: int
) -> tuple[Any, str]:
    """Reads the beginning of a text.

    Returns:
        The encoded text, and a description of the text for the page and for messages.
    """
    names = None if split is None else [split]
    if data is None and (split or "train") == "train":
        name, path = "train", run.config.data.path
        whole = run.task.read_texts(run.vocabulary)[name]  # a large text is kept on disk
        lines = run.task.read_columns(path)[name]
        origin = " and ".join(dict.fromkeys(column.origin for column in lines.values()))
    else:
        if names is None and data is not None:
            there = list(run.task.read_whole([data] if isinstance(data, str) else data))
            names = ["train"] if "train" in there else there[:1]
        (read,) = run.task.evaluation_texts(run.vocabulary, data, names)
        name, whole, described = read.name, read.encoded, read.described
        origin = f"{described.num_lines:,} lines of {described.origin}"
    number = len(run.task.target_ids(whole))
    text = run.task.first_tokens(whole, tokens)
    read_of_it = len(run.task.target_ids(text))
    part = "" if read_of_it == number else f"the first {read_of_it:,} of "
    return text, f"{part}the {number:,} tokens of the {name} text ({origin})"


def _word_id(run: LoadedRun, word: str) -> int:
    vocabulary = run.vocabulary.tokens
    if word not in vocabulary:
        close = difflib.get_close_matches(word, vocabulary, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise RunError(f"{word!r} is not in the vocabulary of {run.folder.path}{hint}")
    return vocabulary.index(word)


def _by_count(run: LoadedRun, ids: np.ndarray) -> np.ndarray:
    """Sorts word ids by their training counts, the most frequent word first."""
    if run.vocabulary.counts is None:
        return ids
    return ids[np.argsort(-np.array(run.vocabulary.counts)[ids], kind="stable")]


def _check_occurrences(run: LoadedRun, ids: np.ndarray, words: Sequence[int], text: str) -> None:
    for word in words:
        number = int(np.count_nonzero(ids == word))
        if number < FEWEST_OCCURRENCES:
            raise RunError(
                f"{run.vocabulary.tokens[word]!r} occurs {times(number)} in {text}, and at least "
                f"{FEWEST_OCCURRENCES} times are needed: read more with --tokens, another text "
                "with --split or --data, or look at another word"
            )
