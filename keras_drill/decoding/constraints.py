"""Constraints of samplers and beam search, which forbid or penalise words.

Shapes: R rows (sequences), L columns (positions), V words. A constraint reads the words of a row,
including its prompt, and changes the log-probabilities of the next word. Any function of
`(log_probs, rows)` can be a constraint. It must return no log-probability above 0: otherwise beam
search may stop too early.
"""

import abc
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.decoding.rows import Rows
from keras_drill.types import Tensor


class Constraint(abc.ABC):
    """Base class for constraints: `constraint(log_probs, rows)` returns new log-probabilities.

    Pass constraints to `keras_drill.decoding.generate` as `constraints=[...]`. The search calls
    them at every step, before it chooses the next words. A row is a sequence of a sampler, or a
    beam. The search ignores the result for finished rows, and for rows whose prompt is still being
    read. Subclasses define `get_config` and `__call__`, which sets the log-probabilities of
    forbidden words to negative infinity.
    """

    @abc.abstractmethod
    def __call__(self, log_probs: Tensor, rows: Rows) -> Any:
        """Returns log-probabilities of the next word under the constraint.

        Args:
            log_probs: Float32 tensor `[R, V]`, V words for each of R rows. Words that
                `forbidden_tokens` or earlier constraints forbid have negative infinity.
            rows: The tokens so far, a `keras_drill.decoding.Rows`. The next word will be written to
                column `rows.index`.

        Returns:
            Float32 tensor `[R, V]`, with negative infinity for words that this constraint forbids
            or that were forbidden before. Values must not be above 0: with such values, a beam
            search could stop too early. The probabilities need not sum to 1.
        """

    @abc.abstractmethod
    def get_config(self) -> dict:
        """Returns a dictionary of the constructor arguments.

        The class method `from_config` creates an equal constraint from this dictionary.
        """

    @classmethod
    def from_config(cls, config: dict) -> "Constraint":
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_drill")
class MinLength(Constraint):
    """Constraint that forbids the end token until `length` words have been generated.

    The prompt and the end token are not counted. A sequence that reaches its maximum length ends
    anyway. Pass the constraint to `keras_drill.decoding.generate` as an element of `constraints`.

    Args:
        length: Minimum number of generated words, at least 1.
    """

    def __init__(self, length: int):
        if not isinstance(length, int) or length < 1:
            raise ValueError(f"`length` must be a positive integer. Received: length={length!r}")
        self.length = length

    def __call__(self, log_probs: Tensor, rows: Rows) -> Any:
        is_short = rows.index - rows.prompt_lengths < self.length  # [R]
        return ops.where(
            ops.logical_and(is_short[:, None], _is_end(log_probs, rows)), -np.inf, log_probs
        )

    def get_config(self) -> dict:
        return {"length": self.length}


@keras.saving.register_keras_serializable(package="keras_drill")
class RepetitionPenalty(Constraint):
    """Constraint that changes the probability p of words that occurred before to p^penalty.

    The words are those of the prompt and of the text generated so far. Pass the constraint to
    `keras_drill.decoding.generate` as an element of `constraints`. The constraint computes

        log p  →  penalty · log p    where log p < 0,    log p / penalty    elsewhere

    Hugging Face's `RepetitionPenaltyLogitsProcessor` applies the same formula to logits, which may
    be positive. This class applies the formula to log-probabilities, which are positive only by
    rounding errors. The end token is never penalised. Otherwise a prompt of several lines, each
    with an end token, would make endings less probable.

    Args:
        penalty: Exponent, above 0. Values above 1 make repetition less probable; the paper uses
            1.2. With 1, nothing changes. Values below 1 make repetition more probable.

    References:
        - [Keskar et al., 2019](https://arxiv.org/abs/1909.05858), section 4.1
    """

    def __init__(self, penalty: float):
        if not 0 < penalty < float("inf"):
            raise ValueError(
                f"`penalty` must be positive and finite. Received: penalty={penalty!r}"
            )
        self.penalty = penalty

    def __call__(self, log_probs: Tensor, rows: Rows) -> Any:
        columns = ops.arange(ops.shape(rows.tokens)[1], dtype="int32")[None, :]  # [1, L]
        is_written = ops.broadcast_to(columns < rows.index, ops.shape(rows.tokens))
        repeats = _mark(rows.tokens, is_written, log_probs)
        repeats = ops.logical_and(repeats, ops.logical_not(_is_end(log_probs, rows)))
        penalised = ops.where(log_probs < 0, log_probs * self.penalty, log_probs / self.penalty)
        return ops.where(repeats, penalised, log_probs)

    def get_config(self) -> dict:
        return {"penalty": self.penalty}


@keras.saving.register_keras_serializable(package="keras_drill")
class NoRepeatNGrams(Constraint):
    """Constraint that forbids words that would complete an n-gram a second time.

    The n-grams are those of the prompt and of the text generated so far. With n = 1, no word of the
    prompt or of this text is generated again. The end token is never forbidden. Pass the constraint
    to `keras_drill.decoding.generate` as an element of `constraints`.

    Args:
        n: Number of words of an n-gram, at least 1.

    References:
        - [Paulus et al., 2017](https://arxiv.org/abs/1705.04304), section 2.5 (trigrams)
    """

    def __init__(self, n: int):
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"`n` must be a positive integer. Received: n={n!r}")
        self.n = n

    def __call__(self, log_probs: Tensor, rows: Rows) -> Any:
        columns = ops.arange(ops.shape(rows.tokens)[1], dtype="int32")  # [L]
        # A word is forbidden if the words before it equal the last words of the row.
        is_place = ops.logical_and(columns >= self.n - 1, columns < rows.index)
        repeats = ops.broadcast_to(is_place[None, :], ops.shape(rows.tokens))  # [R, L]
        for back in range(1, self.n):
            before = _columns(rows.tokens, columns - back)  # [R, L]
            last = _columns(rows.tokens, rows.index - back)  # [R]
            repeats = ops.logical_and(repeats, before == last[:, None])
        ruled_out = _mark(rows.tokens, repeats, log_probs)
        ruled_out = ops.logical_and(ruled_out, ops.logical_not(_is_end(log_probs, rows)))
        return ops.where(ruled_out, -np.inf, log_probs)

    def get_config(self) -> dict:
        return {"n": self.n}


@keras.saving.register_keras_serializable(package="keras_drill")
class BannedWords(Constraint):
    """Constraint that forbids words, and sequences of words.

    The last word of a sequence is forbidden directly after the other words of the sequence, even if
    some or all of the other words are in the prompt. Pass the constraint to
    `keras_drill.decoding.generate` as an element of `constraints`.

    Args:
        words: List with at least one element. An element is a token id to forbid, or a non-empty
            list of the token ids of a sequence to forbid.

    Example:

    >>> from keras_drill.decoding import BannedWords
    >>> BannedWords([3, [5, 7]]).get_config()
    {'words': [[3], [5, 7]]}
    """

    def __init__(self, words: Iterable[int | Iterable[int]]):
        sequences = [
            [int(token) for token in ([word] if isinstance(word, (int, np.integer)) else word)]
            for word in words
        ]
        if not sequences or not all(sequences) or min(map(min, sequences)) < 0:
            raise ValueError(
                "`words` must be a non-empty list. Each entry must be a token id (from 0) or a "
                f"non-empty sequence of token ids. Received: words={words!r}"
            )
        self.words = sequences

    def __call__(self, log_probs: Tensor, rows: Rows) -> Any:
        highest = max(map(max, self.words))
        if highest >= log_probs.shape[-1]:
            raise ValueError(
                f"`words` must be token ids from 0 to {log_probs.shape[-1] - 1}. "
                f"Received: the id {highest}"
            )
        width = max(map(len, self.words)) - 1  # P
        anything = -1
        begins = np.full((len(self.words), width), anything, dtype="int32")  # [W, P]
        for row, word in enumerate(self.words):
            begins[row, width + 1 - len(word) :] = word[:-1]
        places = rows.index - np.arange(width, 0, -1, dtype="int32")  # [P]
        stands = ops.where(places >= 0, _columns(rows.tokens, places), anything)[:, None]
        matches = ops.all(ops.logical_or(begins == anything, begins == stands), axis=-1)  # [R, W]
        ends = ops.convert_to_tensor([word[-1] for word in self.words], dtype="int32")
        ruled_out = _mark(ops.broadcast_to(ends, ops.shape(matches)), matches, log_probs)
        return ops.where(ruled_out, -np.inf, log_probs)

    def get_config(self) -> dict:
        return {"words": self.words}


def _is_end(log_probs, rows):
    """Returns a boolean tensor `[1, V]`, true for the end token."""
    return ops.arange(log_probs.shape[-1], dtype="int32")[None, :] == rows.end_token


def _columns(tokens, places):
    """Returns the tokens at columns. Negative columns have the token of the first column."""
    return ops.take(tokens, ops.maximum(places, 0), axis=1)


def _mark(words, is_marked, log_probs):
    """Returns a boolean tensor `[R, V]`, true for the marked ones of the words `[R, n]`."""
    own = ops.arange(ops.shape(words)[0], dtype="int32")[:, None]  # [R, 1]
    places = ops.stack([ops.broadcast_to(own, ops.shape(words)), words], axis=-1)
    counts = ops.scatter(
        ops.reshape(places, (-1, 2)),
        ops.reshape(ops.cast(is_marked, "int32"), (-1,)),
        (ops.shape(words)[0], log_probs.shape[-1]),
    )
    return counts > 0
