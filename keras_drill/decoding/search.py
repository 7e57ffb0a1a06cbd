"""The loop that samplers and beam search share.

Shapes: B sequences of a batch, K rows (beams) for each of them, R = B · K rows, L columns
(positions), V words.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.decoding.rows import Rows
from keras_drill.ops.log_normalizer import log_normalizer
from keras_drill.types import Tensor

# Up to this number, forbidden words are removed after `shortlist`, without a mask of all words.
_FEW_FORBIDDEN = 16


class Search(abc.ABC):
    """Base class for samplers and beam search: generates sequences token by token, in a loop.

    This class runs the loop. Subclasses choose the next words in `extend`, and return the final
    sequences in `result`. A subclass with several rows for each sequence sets the attribute
    `num_beams` to the number of rows. To write a sampler, derive from `Sampler`.

    A sampler has one row for each sequence of the batch. A beam search has one row for each beam of
    each sequence. Each step of the loop reads one token of every row and writes the next token.
    While a prompt is read, the next token is the prompt's token. So prompts of different lengths
    can share a batch, and the model's state for a row depends only on the tokens of this row.
    Finished rows get no new tokens. In a beam search, a new row may continue any previous row of
    the same sequence. In a sampler, each row continues itself.

    The loop works eagerly, in `tf.function`, under XLA and in `jax.jit`.

    Shape letters: B sequences of the batch, R rows (B times the number of beams), L columns
    (the maximum length), V words.
    """

    num_beams = 1  # K, rows for each sequence.

    def __call__(
        self, step: DecodingStep, tokens: Tensor, lengths: Tensor, **arguments: Any
    ) -> Any:
        """Continues every prompt until the end token or the maximum length.

        Args:
            step: The model's `DecodingStep`, such as `LanguageModelStep(model)`.
            tokens: Integer tensor `[B, L]`: prompts, padded to L, the maximum length of a prompt
                and its new words together.
            lengths: Lengths `[B]` of the prompts, integers from 1 to L.
            **arguments: The other arguments of `begin`, such as `end_token`.

        Returns:
            A `Generation` for a sampler, or `Beams` for a beam search.
        """
        loop, first = self.begin(step, tokens, lengths, **arguments)
        rows, _, memory = ops.while_loop(loop.should_continue, loop.advance, first)
        return self.result(rows, memory)

    @abc.abstractmethod
    def extend(self, log_probs: Tensor, rows: Rows, memory: Any) -> tuple[Any, Any, Any]:
        """Chooses the next word of every row.

        Args:
            log_probs: Float32 tensor `[R, V]`, log-probabilities of the next word of each row;
                negative infinity for forbidden words.
            rows: The `Rows` so far.
            memory: The search's own state, for example the scores of beams. The first call gets the
                `memory` from `begin`, later calls get the `memory` from the previous call.

        Returns:
            `(parents, words, memory)`. `parents` `[R]` contains, for each new row, the index (from
            0 to R - 1) of the row of the same sequence that the new row continues; `None` if each
            row continues itself. `words` `[R]` contains the ids of the chosen words. If the parent
            of a new row is finished, the new row equals its parent, and its word is ignored. Words
            and parents are ignored for rows whose prompt is still being read. `memory` is the
            search's state for the next step, with the same shapes and dtypes as before.
        """

    def shortlist(self, scores: Tensor, rows: Rows, spare: int = 0) -> tuple[Any, Any]:
        """Selects the C best words of each row, the candidates for `extend_listed`.

        A search must define this method only if its `is_listing` is true. The method chooses C.

        Args:
            scores: Floats `[R, V]`, log-probabilities or logits.
            rows: The `Rows` so far.
            spare: Number of words to select in addition to those that the search needs. The loop
                passes the number of forbidden words, which may be among the best words.

        Returns:
            The scores and the ids of the selected words, `[R, C]` each, the row's best word first.
        """
        raise NotImplementedError

    def extend_listed(
        self, log_probs: Tensor, words: Tensor, rows: Rows, memory: Any
    ) -> tuple[Any, Any, Any]:
        """Chooses the next words as `extend` does, but only among the words of `shortlist`.

        Args:
            log_probs: Float32 tensor `[R, C]`, log-probabilities of `words`; negative infinity for
                forbidden words.
            words: Integer tensor `[R, C]`, word ids from `shortlist`.
            rows: As in `extend`.
            memory: As in `extend`.

        Returns:
            `(parents, words, memory)`, as `extend` does. The returned words are ids, not positions
            in the list.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def result(self, rows: Rows, memory: Any) -> Any:
        """Returns the result of a search, such as `Beams`, after the last step.

        Args:
            rows: The `Rows` after the last step.
            memory: The search's own state after the last step, see `extend`.
        """

    @property
    def needs_attention(self) -> bool:
        """Whether the search needs `Rows.attention`; by default, false.

        If true, the search requires a model with attention to a source, see
        `DecodingStep.read_with_attention`.
        """
        return False

    @property
    def is_listing(self) -> bool:
        """Whether the search needs only the log-probabilities of the best words of each row.

        By default, false. If true, the search defines `shortlist` and `extend_listed`. The loop
        calls both instead of `extend`, unless the call of the search has constraints or more than
        16 forbidden tokens.
        """
        return False

    def is_done(self, rows: Rows, memory: Any) -> Any:
        """Returns whether the loop may stop, a boolean scalar.

        By default, the loop stops when all rows are finished.
        """
        return ops.all(rows.finished)

    def may_win(self, rows: Rows, memory: Any) -> Any:
        """Returns whether the tokens of each row may still be part of a result, booleans `[R]`.

        `stream` yields words on which all such rows of a sequence agree. By default, all values are
        true.
        """
        return ops.ones_like(rows.finished)

    def begin(
        self,
        step: DecodingStep,
        tokens: Tensor,
        lengths: Tensor,
        *,
        inputs: Any = None,
        max_lengths: Tensor | None = None,
        end_token: int | None = None,
        forbidden_tokens: Any = (),
        constraints: Sequence[Callable[[Any, Rows], Any]] = (),
        pad_token: int = 0,
        ends: Callable[[Rows], Any] | None = None,
    ) -> tuple["Loop", tuple[Rows, Any, Any]]:
        """Begins a search: reads the columns before the last token of the shortest prompt.

        `__call__` and `stream` call this method with their arguments. The steps of the loop read
        the other columns. Subclasses with a state of their own override this method, to return the
        first `memory`.

        Args:
            step: The model's `DecodingStep`.
            tokens: Integer tensor `[B, L]`: prompts, padded to L, the maximum length of a prompt
                and its new words together.
            lengths: Lengths `[B]` of the prompts, integers from 1 to L. With a NumPy array or a
                list, a backbone with a recurrent state reads the columns before the loop in one
                call. With a tensor, whose values may be unknown while tracing, the backbone reads
                these columns one by one.
            inputs: Other inputs of the model, see `DecodingStep.begin`.
            max_lengths: Integer tensor `[B]`, the maximum length of each sequence with its prompt,
                at most L. Defaults to L.
            end_token: Id of the token that ends a sequence. With `None`, sequences end at their
                maximum length.
            forbidden_tokens: Ids of tokens never to generate.
            constraints: `Constraint`s, applied one after the other. A row ends if they allow no
                word.
            pad_token: Padding of the result after the end of a sequence.
            ends: Additional condition for the end of a row, such as a stop string. A function,
                called after each step, from `Rows` to booleans `[R]`, true for rows that end.

        Returns:
            The loop, an object that `__call__` runs, and its initial variables
            `(rows, state, memory)`: the `Rows`, the state of the model, and the search's own state,
            see `extend`.
        """
        tokens = ops.convert_to_tensor(tokens, dtype="int32")
        batch_size, width = ops.shape(tokens)
        known_lengths = None if ops.is_tensor(lengths) else np.asarray(lengths)
        lengths = ops.convert_to_tensor(lengths, dtype="int32")
        # An empty batch has no shortest prompt: the bound keeps the scan short.
        if known_lengths is None:
            start = ops.minimum(ops.min(lengths, initial=width), width)
        else:
            start = int(known_lengths.min(initial=width))
        columns = ops.arange(width, dtype="int32")[None, :]  # [1, L]
        tokens = ops.where(columns < lengths[:, None], tokens, pad_token)
        longest = ops.convert_to_tensor(width if max_lengths is None else max_lengths, "int32")
        longest = ops.broadcast_to(longest, (batch_size,))
        constants, state = step.begin(inputs, batch_size, width)
        state = step.prefill(tokens, start - 1, constants, state)
        mask = ops.zeros((batch_size, 0), "bool")  # [B, S]
        if self.needs_attention:
            mask = step.source_mask(constants)
        tokens, lengths, longest, mask, state = self._to_rows(
            (tokens, lengths, longest, mask, state)
        )
        rows = Rows(
            index=ops.convert_to_tensor(start, dtype="int32"),
            tokens=tokens,
            log_probs=ops.zeros_like(tokens, dtype="float32"),
            lengths=lengths,
            finished=lengths >= longest,
            prompt_lengths=lengths,
            max_lengths=longest,
            end_token=ops.convert_to_tensor(-1 if end_token is None else end_token, "int32"),
            attention=ops.zeros((*ops.shape(tokens), ops.shape(mask)[1])),
            source_mask=mask,
        )
        forbidden = _forbidden_mask(forbidden_tokens, step.vocabulary_size)  # [V]
        return Loop(self, step, constants, forbidden, constraints, ends), (rows, state, ())

    def _to_rows(self, structure):
        """Repeats the tensors of each sequence for each of its rows."""
        if self.num_beams == 1:
            return structure
        return keras.tree.map_structure(lambda x: ops.repeat(x, self.num_beams, axis=0), structure)


class Loop:
    """The loop of one search, with the search's constants.

    Args:
        search: The `Search`.
        step: The model's `DecodingStep`.
        constants: Output of `step.begin`.
        forbidden: Booleans `[V]`, true for words never to generate.
        constraints: Functions of `(log_probs, rows)` that return new log-probabilities.
        ends: Function from `Rows` to booleans `[R]`, true for rows that have ended; or `None`.
    """

    def __init__(
        self,
        search: Search,
        step: DecodingStep,
        constants: Any,
        forbidden: np.ndarray,
        constraints: Sequence[Callable[[Any, Rows], Any]],
        ends: Callable[[Rows], Any] | None,
    ):
        self.search = search
        self.step = step
        self.constants = constants
        self.forbidden = forbidden
        self.constraints = constraints
        self.ends = ends
        # Constraints may change the log-probability of any word, so they need all words.
        self.is_listing = (
            search.is_listing and not constraints and forbidden.sum() <= _FEW_FORBIDDEN
        )
        self.extend: Callable[..., Any] = search.extend_listed if self.is_listing else search.extend
        score_logits = step.logit_scorer() if self.is_listing else None
        self.has_logits = score_logits is not None
        self.score = score_logits or step.scorer()

    def should_continue(self, rows: Rows, state: Any, memory: Any) -> Any:
        """Returns whether there is another step, a boolean scalar."""
        has_room = rows.index < ops.shape(rows.tokens)[1]
        return ops.logical_and(has_room, ops.logical_not(self.search.is_done(rows, memory)))

    def advance(self, rows: Rows, state: Any, memory: Any) -> tuple[Rows, Any, Any]:
        """Reads a column and writes the next one. Returns the new `(rows, state, memory)`."""
        last = ops.take(rows.tokens, rows.index - 1, axis=1)  # [R]
        attention = ()
        if self.search.needs_attention:
            read = self.step.read_with_attention
            hidden, state, attention = read(last, self.constants, state)
        else:
            hidden, state = self.step.read(last, self.constants, state)
        scores = ops.cast(self.score(hidden), "float32")  # [R, V], logits or log-probabilities
        choices: tuple[Any, ...]  # what `extend` chooses from
        if self.is_listing:
            choices, normalizers = self._listed(scores, rows)
        else:
            allowed, rows = self._allowed(scores, rows)
            choices, normalizers = (allowed,), None
        if self.search.needs_attention:
            here = rows.next_places[..., None]  # [R, L, 1]
            attention = ops.cast(attention, "float32")[:, None]  # [R, 1, S]
            rows = rows._replace(attention=ops.where(here, attention, rows.attention))
        parents, words, memory = self.extend(*choices, rows, memory)
        words = ops.cast(words, "int32")
        own = ops.arange(ops.shape(rows.tokens)[0], dtype="int32")
        if parents is None:
            log_prob = self._log_prob(scores, normalizers, own, words)
        else:
            parents = ops.where(rows.is_in_prompt, own, ops.cast(parents, "int32"))
            log_prob = self._log_prob(scores, normalizers, parents, words)
            rows, state = _continue(parents, rows, state)
        return self._write(words, log_prob, rows), state, memory

    def _allowed(self, log_probs, rows):
        """Applies all constraints. Returns log-probabilities `[R, V]`, and the rows.

        Rows without an allowed word become finished.
        """
        if self.forbidden.any():  # known before the graph: a pass over all scores
            log_probs = ops.where(self.forbidden, -np.inf, log_probs)
        if self.constraints:
            for constraint in self.constraints:
                log_probs = constraint(log_probs, rows)
            is_stuck = ops.logical_not(ops.any(log_probs > -np.inf, axis=-1))  # [R]
            is_stuck = ops.logical_and(is_stuck, ops.logical_not(rows.is_in_prompt))
            rows = rows._replace(finished=ops.logical_or(rows.finished, is_stuck))
        return log_probs, rows

    def _listed(self, scores, rows):
        """Selects the words of each row from which the search chooses, and their log-probabilities.

        Returns:
            Log-probabilities and words, `[R, C]` each; and the normalizers `[R]` or None.
        """
        best, words = self.search.shortlist(scores, rows, int(self.forbidden.sum()))
        normalizers = None
        if self.has_logits:
            normalizers = log_normalizer(scores, words[:, 0])
            best = best - normalizers[:, None]
        if self.forbidden.any():
            best = ops.where(ops.take(self.forbidden, words), -np.inf, best)
        return (best, words), normalizers

    def _log_prob(self, scores, normalizers, parents, words):
        """Returns the log-probability `[R]` of each row's word `[R]` given its parent row."""
        num_beams, num_words = self.search.num_beams, scores.shape[-1]
        index = parents % num_beams * num_words + words  # index among the rows of the sequence
        of_sequences = ops.reshape(scores, (-1, num_beams * num_words))
        index = ops.reshape(index, (-1, num_beams))
        score = ops.reshape(ops.take_along_axis(of_sequences, index, axis=1), (-1,))
        return score if normalizers is None else score - ops.take(normalizers, parents, axis=0)

    def _write(self, words, log_prob, rows):
        """Writes a word `[R]` and its log-probability `[R]` to each row that receives one."""
        # Replace a column by selection, which needs only standard operations on every backend.
        here = rows.next_places  # [R, L]
        active = ops.any(here, axis=-1)  # [R]
        rows = rows._replace(
            tokens=ops.where(here, words[:, None], rows.tokens),
            log_probs=ops.where(here, log_prob[:, None], rows.log_probs),
            lengths=rows.lengths + ops.cast(active, "int32"),
        )
        ended = ops.logical_or(rows.lengths >= rows.max_lengths, words == rows.end_token)
        if self.ends is not None:
            ended = ops.logical_or(ended, self.ends(rows))
        finished = ops.logical_or(rows.finished, ops.logical_and(active, ended))
        return rows._replace(index=rows.index + 1, finished=finished)


def _continue(parents, rows, state):
    """Returns rows and state, copied for each row from the row that it continues."""
    names = ("tokens", "log_probs", "lengths", "finished", "attention")
    own, state = keras.tree.map_structure(
        lambda x: ops.take(x, parents, axis=0),
        ({name: getattr(rows, name) for name in names}, state),
    )
    return rows._replace(**own), state


def _forbidden_mask(forbidden_tokens, vocabulary_size):
    mask = np.zeros(vocabulary_size, dtype=bool)
    for token in forbidden_tokens:
        if not 0 <= token < vocabulary_size:
            raise ValueError(
                f"`forbidden_tokens` must be token ids from 0 to {vocabulary_size - 1}. "
                f"Received: forbidden_tokens={forbidden_tokens}"
            )
        mask[token] = True
    if mask.all():
        raise ValueError("`forbidden_tokens` must leave at least one token. Received: all of them")
    return mask
