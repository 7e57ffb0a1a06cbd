"""Computes model outputs for many sources."""

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_drill.decoding import Sampler
from keras_drill.export import Translator

_ROWS = 64  # batch size


@dataclasses.dataclass(frozen=True)
class Answer:
    """Model outputs for one source.

    Args:
        texts: The outputs, the best first.
        scores: Scores for ranking; negative infinity for missing outputs.
        log_probs: Log-probabilities of the outputs.
        is_truncated: For each output, whether it reached `decoding.max_tokens` or
            `decoding.max_ratio` before an end token.
        is_cut: Whether the source was too long and was truncated.
    """

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    log_probs: tuple[float, ...]
    is_truncated: tuple[bool, ...]
    is_cut: bool


class Limits:
    """Counts the sources that were truncated, and the best outputs that reached a limit."""

    def __init__(self):
        self.answers = 0
        self.cut_sources = 0
        self.truncated = 0

    def add(self, answers: Iterable[Answer]) -> None:
        for answer in answers:
            self.answers += 1
            self.cut_sources += answer.is_cut
            self.truncated += answer.is_truncated[0]

    def warn(self, config: Any) -> None:
        """Prints warnings with the counts and the limiting options.

        Args:
            config: The `SequenceToSequenceConfig` of the run.
        """
        count, decoding = f"of {self.answers:,}", config.decoding
        option = "decoding.max_source_tokens" if decoding.max_source_tokens else "data.max_length"
        read = {"right": "their beginning", "left": "their end"}[config.data.truncation_side]
        if self.cut_sources:
            print(
                f"keras-drill: warning: {self.cut_sources:,} {count} sources are longer than "
                f"{option} = {config.max_source_tokens} tokens; the model reads only {read}",
                file=sys.stderr,
            )
        if self.truncated:
            print(
                f"keras-drill: warning: {self.truncated:,} {count} outputs are incomplete: they "
                f"reached decoding.max_tokens = {decoding.max_tokens} or decoding.max_ratio = "
                f"{decoding.max_ratio:g}",
                file=sys.stderr,
            )


def warn_of_limits(answers: Iterable[Answer], config: Any) -> None:
    """Prints warnings about truncated sources and incomplete outputs; see `Limits.warn`."""
    limits = Limits()
    limits.add(answers)
    limits.warn(config)


def answer_all(
    translator: Translator,
    sources: Sequence[str],
    verbose: int = 0,
    prefixes: Sequence[str] | None = None,
    first_row: int = 0,
) -> list[Answer]:
    """Computes outputs for sources, in batches of similar lengths.

    Args:
        translator: The model.
        sources: The texts.
        verbose: 1 to show progress, on a terminal only.
        prefixes: The beginning of each output; `None` for no prefixes.
        first_row: Number of sources in earlier calls, so that a sampler draws other random numbers.

    Returns:
        The outputs, in the order of the sources.
    """
    verbose = verbose if sys.stdout.isatty() else 0  # no control characters in files
    order = np.argsort([-len(source.split()) for source in sources], kind="stable")
    answers: dict[int, Answer] = {}
    progress = keras.utils.Progbar(len(sources), verbose=verbose, unit_name="sentence")
    draws = isinstance(translator.search, Sampler)
    for start in range(0, len(sources), _ROWS):
        rows = order[start : start + _ROWS]
        found = translator.answer(
            tf.constant([sources[row] for row in rows], tf.string),
            None if prefixes is None else tf.constant([prefixes[row] for row in rows], tf.string),
            tf.constant(rows + first_row) if draws else None,
        )
        found = {name: value.numpy() for name, value in found.items()}
        cut = found["source_lengths"] > translator.max_source_tokens
        for place, row in enumerate(rows):
            answers[int(row)] = Answer(
                tuple(text.decode() for text in found["texts"][place]),
                tuple(found["scores"][place].tolist()),
                tuple(found["log_probs"][place].tolist()),
                tuple(found["is_truncated"][place].tolist()),
                bool(cut[place]),
            )
        progress.update(len(answers))
    return [answers[row] for row in range(len(sources))]
