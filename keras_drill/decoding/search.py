"""The loop that samplers and beam search share.

B sequences of a batch, K rows written for each of them, R = B · K rows, L columns, V words.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_drill.decoding.decoding_step import DecodingStep
from keras_drill.types import Tensor


class Rows(NamedTuple):
    """What has been written so far.

    Attributes:
        index: Integer scalar, the column that comes next (or just came, for `ends`).
        tokens: Integer tensor `[R, L]`: prompt, then what was written, then padding.
        log_probs: Float32 tensor `[R, L]`: the log-probability that the model itself gave to each
            word that was written (whatever the temperature, the words left out or forbidden), 0 at
            the prompt and at the padding.
        lengths: Integer tensor `[R]`: how many tokens are not padding.
        finished: Boolean tensor `[R]`: rows that are frozen.
        prompt_lengths: Integer tensor `[R]`.
    """

    index: Any
    tokens: Any
    log_probs: Any
    lengths: Any
    finished: Any
    prompt_lengths: Any


class Search(abc.ABC):
    """Base class of samplers and beam search: owns the loop, leaves the choice of words open.

    Each step of the loop feeds one column to the model and writes the next one. A row whose prompt
    reaches further keeps the prompt's token, so prompts of different lengths share a batch and
    every row's state has read exactly that row's tokens. A row that ended is frozen. Where a search
    writes several rows for each sequence, any of them may continue any other of that sequence; a
    search whose rows all continue themselves is a sampler.

    Works eagerly, in `tf.function`, under XLA and in `jax.jit`.
    """

    num_beams = 1  # K, rows for each sequence.

    @abc.abstractmethod
    def extend(self, log_probs: Tensor, rows: Rows, memory: Any) -> tuple[Any, Any, Any]:
        """Chooses the next word of every row.

        Args:
            log_probs: Float32 tensor `[R, V]`, negative infinity for forbidden words.
            rows: What was written so far. What is chosen for rows that are in their prompt still
                (`index < prompt_lengths`), or finished, is not written.
            memory: What `run` was given, or the previous call returned.

        Returns:
            `(parents, words, memory)`: for every row the row that it continues, integers `[R]`, or
            `None` where each continues itself; the words `[R]`; and whatever the search wants to
            find at the next step, in the same shapes and types.
        """

    def is_done(self, rows: Rows, memory: Any) -> Any:
        """Whether the loop may stop, a boolean scalar: when all rows are finished."""
        return ops.all(rows.finished)

    def run(
        self,
        step: DecodingStep,
        tokens: Tensor,
        lengths: Tensor,
        *,
        memory: Any = (),
        inputs: Any = None,
        max_lengths: Tensor | None = None,
        end_token: int | None = None,
        forbidden_tokens: Any = (),
        pad_token: int = 0,
        ends: Callable[[Rows], Any] | None = None,
    ) -> tuple[Rows, Any]:
        """Continues every row of a buffer until the end token or the end of the row.

        Args:
            step: The model's `DecodingStep`.
            tokens: Integer tensor `[B, L]`: prompts, followed by room for what is written.
            lengths: Lengths `[B]` of the prompts, from 1 to L. As NumPy array or list, the part
                that all prompts have is read in parallel; as tensor, it is read by a scan, whose
                length may depend on the data under XLA too.
            memory: What the first call of `extend` finds.
            inputs: What the model reads besides, see `DecodingStep.begin`.
            max_lengths: Integer tensor `[B]`, where each row ends if it does not reach the end
                token before. Defaults to L.
            end_token: The token that ends a sequence, or None.
            forbidden_tokens: Tokens never to write.
            pad_token: Fills the buffer after a sequence's end.
            ends: From `Rows` to booleans `[R]`: rows that end with the word just written, for
                reasons of their own (a stop string, say).

        Returns:
            The rows `[R, ...]` and the search's memory.
        """
        tokens = ops.convert_to_tensor(tokens, dtype="int32")
        batch_size, width = ops.shape(tokens)
        prompt_lengths = ops.convert_to_tensor(lengths, dtype="int32")
        max_lengths = ops.convert_to_tensor(
            width if max_lengths is None else max_lengths, dtype="int32"
        )
        columns = ops.arange(width, dtype="int32")[None, :]  # [1, L]
        tokens = ops.where(columns < prompt_lengths[:, None], tokens, pad_token)
        forbidden = _forbidden_mask(forbidden_tokens, step.vocabulary_size)  # [V]

        if ops.is_tensor(lengths):
            # An empty batch has no shortest prompt: the bound keeps the scan short.
            start = ops.minimum(ops.min(prompt_lengths, initial=width), width)
        else:
            start = int(np.min(lengths, initial=width))
        constants, state = step.begin(inputs, batch_size, width)
        state = step.prefill(tokens, start - 1, constants, state)
        if self.num_beams > 1:
            tokens, prompt_lengths, state = self._to_rows((tokens, prompt_lengths, state))
            if len(max_lengths.shape):
                max_lengths = self._to_rows(max_lengths)

        def advance(rows, state, memory):
            hidden, state = step.read(
                ops.take(rows.tokens, rows.index - 1, axis=1), constants, state
            )
            scores = step.log_probs(hidden)  # [R, V]
            parents, words, memory = self.extend(
                ops.where(forbidden, -np.inf, scores), rows, memory
            )
            words = ops.cast(words, "int32")  # [R]
            if parents is not None:
                own = ops.arange(ops.shape(rows.tokens)[0], dtype="int32")
                in_prompt = rows.index < rows.prompt_lengths
                parents = ops.where(in_prompt, own, ops.cast(parents, "int32"))
                index, *written = rows
                *written, state, scores = gather_rows((*written, state, scores), parents)
                rows = Rows(index, *written)
            log_prob = ops.take_along_axis(scores, words[:, None], axis=-1)  # [R, 1]
            active = ops.logical_and(
                rows.index >= rows.prompt_lengths, ops.logical_not(rows.finished)
            )
            # A column is replaced by selection: stock operations only, on every backend.
            here = ops.logical_and(columns == rows.index, active[:, None])  # [R, L]
            rows = rows._replace(
                tokens=ops.where(here, words[:, None], rows.tokens),
                log_probs=ops.where(here, log_prob, rows.log_probs),
                lengths=rows.lengths + ops.cast(active, "int32"),
            )
            ended = rows.lengths >= max_lengths
            if end_token is not None:
                ended = ops.logical_or(ended, words == end_token)
            if ends is not None:
                ended = ops.logical_or(ended, ends(rows))
            finished = ops.logical_or(rows.finished, ops.logical_and(active, ended))
            return rows._replace(index=rows.index + 1, finished=finished), state, memory

        rows = Rows(
            index=ops.convert_to_tensor(start, dtype="int32"),
            tokens=tokens,
            log_probs=ops.zeros_like(tokens, dtype="float32"),
            lengths=prompt_lengths,
            finished=prompt_lengths >= max_lengths,
            prompt_lengths=prompt_lengths,
        )
        rows, _, memory = ops.while_loop(
            lambda rows, state, memory: ops.logical_and(
                rows.index < width, ops.logical_not(self.is_done(rows, memory))
            ),
            advance,
            (rows, state, memory),
        )
        return rows, memory

    def _to_rows(self, structure):
        """Repeats what there is of each sequence for each of its rows."""
        return keras.tree.map_structure(lambda x: ops.repeat(x, self.num_beams, axis=0), structure)


def gather_rows(structure, rows):
    """Takes rows of all tensors of a nested structure."""
    return keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), structure)


def _forbidden_mask(forbidden_tokens, vocabulary_size):
    mask = np.zeros(vocabulary_size, dtype=bool)
    for token in forbidden_tokens:
        if not 0 <= token < vocabulary_size:
            raise ValueError(
                f"`forbidden_tokens` must be from 0 to {vocabulary_size - 1}. "
                f"Received: forbidden_tokens={forbidden_tokens}"
            )
        mask[token] = True
    if mask.all():
        raise ValueError("`forbidden_tokens` must leave at least one token. Received: all of them")
    return mask
