"""Evaluation of any exported model by its signature `examples`."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_drill.data.serialize_examples import serialize_examples
from keras_drill.workbench.tasks.errors import RunError

_ROWS = 32


@dataclasses.dataclass(frozen=True)
class EvaluatedExamples:
    """What a model says of examples, in their order.

    Args:
        words: The words that it was evaluated on, one text after the other, `[N]`.
        log_probs: Their log-probabilities, float64 `[N]`.
        lengths: How many of them each example has, `[examples]`.
        answers: What it answers to each; empty texts of a model that was not asked.
    """

    words: np.ndarray
    log_probs: np.ndarray
    lengths: np.ndarray
    answers: Sequence[str]

    @property
    def perplexity(self) -> float:
        """Of all words together."""
        return math.exp(-self.log_probs.mean())

    @property
    def line_log_probs(self) -> np.ndarray:
        """Sums by example, float64 `[examples]`."""
        ends = np.cumsum(self.lengths)
        return np.diff(np.concatenate([[0.0], np.cumsum(self.log_probs)])[[0, *ends]])


def evaluate_examples(
    answer: Callable[..., Mapping[str, Any]],
    columns: Mapping[str, Iterable[bytes]],
    progress: Callable[[int], None] = lambda done: None,
) -> EvaluatedExamples:
    """Asks a model about every line of a text, or every pair of two.

    Args:
        answer: The signature: of a loaded SavedModel, `loaded.signatures["examples"]`, or the
            `tf.function` of a `TextModel` or `Translator`.
        columns: The features of the examples, by name.
        progress: Is told how many examples are done.

    Raises:
        RunError: There is none, or the model cannot make sense of one.
    """
    names = list(columns)
    rows = list(zip(*(columns[name] for name in names), strict=True))
    if not rows:
        raise RunError("there is nothing to evaluate the model on: the text has no lines")
    # Those of like lengths together, so that little is computed for padding.
    order = sorted(range(len(rows)), key=lambda row: sum(map(len, rows[row])), reverse=True)
    found: dict[int, tuple[np.ndarray, np.ndarray, str]] = {}
    for start in range(0, len(order), _ROWS):
        chosen = order[start : start + _ROWS]
        block = {name: [rows[row][place] for row in chosen] for place, name in enumerate(names)}
        told = answer(examples=tf.constant(serialize_examples(block)))
        values = {name: told[name].numpy() for name in _OUTPUTS}
        for place, row in enumerate(chosen):
            if values["problems"][place]:
                problem = values["problems"][place].decode()
                raise RunError(f"the model does not take the examples as they are: {problem}")
            length = values["lengths"][place]
            found[row] = (
                values["words"][place, :length],
                values["log_probs"][place, :length].astype("float64"),
                values["answers"][place].decode(errors="replace"),
            )
        progress(len(found))
    words, log_probs, answers = zip(*(found[row] for row in range(len(rows))), strict=True)
    return EvaluatedExamples(
        np.concatenate(words),
        np.concatenate(log_probs),
        np.array([len(each) for each in words]),
        answers,
    )


def first_examples(
    columns: Mapping[str, Iterable[bytes]], number: int | None
) -> dict[str, list[bytes]]:
    """The first examples of a text; `None` for all."""
    return {name: list(itertools.islice(iter(lines), number)) for name, lines in columns.items()}


_OUTPUTS = ("words", "log_probs", "lengths", "answers", "problems")
