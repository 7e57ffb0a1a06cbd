"""Evaluates exported models of any task by their signature `examples`."""

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
    """Log-probabilities and outputs of a model for examples, in the examples' order.

    Args:
        words: The target words of all examples, one example after the other, `[N]`.
        log_probs: Log-probabilities of the target words, float64 `[N]`.
        lengths: Number of target words of each example, `[examples]`.
        answers: The model's output for each example, empty for models that only score texts.
    """

    words: np.ndarray
    log_probs: np.ndarray
    lengths: np.ndarray
    answers: Sequence[str]

    @property
    def perplexity(self) -> float:
        """The perplexity over all target words."""
        return math.exp(-self.log_probs.mean())

    @property
    def line_log_probs(self) -> np.ndarray:
        """The sum of the log-probabilities of each example, float64 `[examples]`."""
        ends = np.cumsum(self.lengths)
        return np.diff(np.concatenate([[0.0], np.cumsum(self.log_probs)])[[0, *ends]])


def evaluate_examples(
    answer: Callable[..., Mapping[str, Any]],
    columns: Mapping[str, Iterable[bytes]],
    progress: Callable[[int], None] = lambda done: None,
) -> EvaluatedExamples:
    """Evaluates an exported model on the lines of a text, or on pairs of lines of two texts.

    Args:
        answer: The signature `examples`: `loaded.signatures["examples"]` of a loaded SavedModel, or
            the `tf.function` of a `TextModel` or `Translator`.
        columns: The features of the examples, by name.
        progress: Function that is called after each batch with the number of evaluated examples.

    Raises:
        RunError: There are no examples, or the model rejects an example.
    """
    names = list(columns)
    rows = list(zip(*(columns[name] for name in names), strict=True))
    if not rows:
        raise RunError("the text on which the model is evaluated must have at least one line")
    # Examples of similar lengths share a batch, which reduces padding.
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
                raise RunError(f"the model rejects an example: {problem}")
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
    """Returns the first `number` examples of a text, or all if `number` is `None`."""
    return {name: list(itertools.islice(iter(lines), number)) for name, lines in columns.items()}


_OUTPUTS = ("words", "log_probs", "lengths", "answers", "problems")
