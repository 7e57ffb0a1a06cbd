"""Answering many sources."""

import dataclasses
import sys
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_drill.export import Translator

_ROWS = 64  # that are answered at once


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a model answers to one source.

    Args:
        texts: The answers, the best first.
        scores: What they are ranked by.
        log_probs: Their log-probabilities.
        is_cut: Whether the source was too long, and only its beginning was read.
    """

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    log_probs: tuple[float, ...]
    is_cut: bool


def warn_of_cut_sources(number: int, total: int, max_length: int) -> None:
    """Says once how many of the sources were too long."""
    if number:
        print(
            f"keras-drill: warning: {number:,} of {total:,} sources are longer than "
            f"data.max_length = {max_length} tokens, and only so much of them was read",
            file=sys.stderr,
        )


def answer_all(translator: Translator, sources: Sequence[str], verbose: int = 0) -> list[Answer]:
    """Answers sources, those of like lengths together; the answers are in the sources' order.

    Args:
        translator: The model.
        sources: The texts.
        verbose: 1 to show progress, on a terminal only.
    """
    verbose = verbose if sys.stdout.isatty() else 0  # a bar is control characters to a file
    order = np.argsort([-len(source.split()) for source in sources], kind="stable")
    answers: dict[int, Answer] = {}
    progress = keras.utils.Progbar(len(sources), verbose=verbose, unit_name="sentence")
    for start in range(0, len(sources), _ROWS):
        rows = order[start : start + _ROWS]
        found = translator.answer(tf.constant([sources[row] for row in rows], tf.string))
        found = {name: value.numpy() for name, value in found.items()}
        cut = found["source_lengths"] > translator.max_source_tokens
        for place, row in enumerate(rows):
            answers[int(row)] = Answer(
                tuple(text.decode() for text in found["texts"][place]),
                tuple(found["scores"][place].tolist()),
                tuple(found["log_probs"][place].tolist()),
                bool(cut[place]),
            )
        progress.update(len(answers))
    return [answers[row] for row in range(len(sources))]
