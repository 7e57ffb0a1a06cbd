"""The interface between searches and models."""

import abc
from collections.abc import Callable
from typing import Any

from keras import ops

from keras_drill.types import Tensor


class DecodingStep(abc.ABC):
    """Interface between a model and a search, such as a sampler or a beam search.

    For a `keras_drill.LanguageModel` use `LanguageModelStep`. Write a subclass with `begin`, `read`
    and `log_probs` to generate sequences with any other model. A search calls these methods:

        constants, state = step.begin(inputs, batch_size, length)
        hidden, state = step.read(tokens, constants, state)         for each column
        log_probs = step.log_probs(hidden)

    A search generates R rows of words, and a column is one position of all rows. A beam search
    generates K rows for each of the B sequences of a batch: row r belongs to sequence r // K, and
    R = B · K. A sampler has one row per sequence, R = B.

    - *Constants* are shared by all rows of a sequence and do not change, for example an encoded
      source: any nested structure of tensors whose first dimension is B. Constants are never copied
      per row. A step that combines rows with constants reshapes its rows `[R, ...]` to
      `[B, K, ...]`. In attention to a source, for example, the K rows of a sequence are like K
      positions of the query.
    - The *state* describes the tokens that each row has read so far, for example as a cache. The
      state is any nested structure of tensors whose first dimension is R (in `begin` and `prefill`,
      B). Beam search copies the state of a row to another row by this dimension. Shapes and dtypes
      of the state do not change from step to step: a Transformer allocates caches for `length`
      columns at the beginning, and keeps its position as an `[R]` tensor.

    The calls of `read` read columns 0, 1, 2, ... in this order. If `prefill` has read the first
    columns, the calls of `read` begin after them.

    Args:
        vocabulary_size: Number of words V.

    Example, a bigram model from a table of log-probabilities:

    >>> import keras, keras_drill
    >>> from keras_drill.decoding import DecodingStep
    >>> class Bigrams(DecodingStep):
    ...     def __init__(self, log_probs):
    ...         super().__init__(vocabulary_size=log_probs.shape[1])
    ...         self.table = log_probs
    ...     def begin(self, inputs, batch_size, length):
    ...         return (), ()
    ...     def read(self, tokens, constants, state):
    ...         return keras.ops.take(self.table, tokens, axis=0), state
    ...     def log_probs(self, hidden):
    ...         return hidden
    >>> step = Bigrams(keras.ops.log(keras.ops.array([[0.1, 0.9, 0], [0, 0.2, 0.8], [1, 0, 0]])))
    >>> result = keras_drill.decoding.generate(step, [[0]], 5)
    >>> keras.ops.convert_to_numpy(result.tokens)[0].tolist()
    [0, 1, 2, 0, 1]
    """

    def __init__(self, vocabulary_size: int):
        self.vocabulary_size = vocabulary_size

    @abc.abstractmethod
    def begin(self, inputs: Any, batch_size: int, length: int) -> tuple[Any, Any]:
        """Returns the constants and the state before the first column.

        Args:
            inputs: Other inputs of the model, for example the source of a translation: a nested
                structure of tensors with first dimension B. `None` for language models.
            batch_size: Number of sequences B, an integer or a scalar tensor.
            length: Largest number of columns, an integer or a scalar tensor.

        Returns:
            `(constants, state)`, both with first dimension B. After `prefill`, the search repeats
            the state for its R rows.
        """

    @abc.abstractmethod
    def read(self, tokens: Tensor, constants: Any, state: Any) -> tuple[Any, Any]:
        """Reads one more token of every row.

        While the default `prefill` reads prompts, each sequence has one row, R = B, also in a beam
        search.

        Args:
            tokens: Integer tensor `[R]`, the next token of each row.
            constants: From `begin`.
            state: From `begin`, `prefill` or the previous call, with first dimension R.

        Returns:
            `(hidden, state)`: a tensor with first dimension R, the input of `log_probs`, and the
            new state.
        """

    @abc.abstractmethod
    def log_probs(self, hidden: Tensor) -> Tensor:
        """Returns log-probabilities of the next word, a float32 tensor `[R, V]`.

        Args:
            hidden: From `read`.
        """

    def scorer(self) -> Callable[[Any], Tensor]:
        """Returns the function that computes log-probabilities; by default, `log_probs`.

        The function has the argument and result of `log_probs`. The search calls `scorer` once,
        before its loop, and the returned function at every step. Override `scorer` if a part of the
        computation does not depend on the hidden states, to compute this part only once.
        """
        return self.log_probs

    def logit_scorer(self) -> Callable[[Any], Tensor] | None:
        """Returns a function from `hidden` to logits `[R, V]`; by default, `None` (no logits).

        The log-softmax of the logits must be the log-probabilities. Subclasses need not override
        this method. With logits, a beam search is faster, because it normalises only the logits of
        the best words.
        """
        return None

    def source_mask(self, constants: Any) -> Any:
        """Returns which of the S positions of the source are not padding: booleans `[B, S]`.

        Override this method and `read_with_attention` for models with attention to a source. The
        `coverage_penalty` and `return_attention` of a beam search need both methods. By default,
        this method raises a `ValueError`.

        Args:
            constants: From `begin`.
        """
        raise ValueError(
            "`coverage_penalty` and `return_attention` need a model with attention to a source. "
            f"Received: a {type(self).__name__} without attention"
        )

    def read_with_attention(
        self, tokens: Tensor, constants: Any, state: Any
    ) -> tuple[Any, Any, Any]:
        """Reads one more token of every row as `read` does, and also returns the attention.

        The arguments are those of `read`. The search calls this method instead of `read` if it
        needs attention.

        Returns:
            `(hidden, state, attention)`: the output of `read`, and the attention weights of the S
            positions of the source, floats `[R, S]`, 0 where `source_mask` is false.
        """
        raise NotImplementedError

    def prefill(self, tokens: Tensor, count: Tensor, constants: Any, state: Any) -> Any:
        """Reads the first `count` columns of prompts, without computing log-probabilities.

        By default, this method calls `read` for each column. Override it for a model that can read
        several columns in one call.

        Args:
            tokens: Integer tensor `[B, L]`: prompts, padded to the maximum length L.
            count: Number of columns to read, from 0 to L: a Python integer, or a scalar tensor if
                the number is known only when the graph runs.
            constants: From `begin`.
            state: From `begin`, with first dimension B.

        Returns:
            The state after these columns, with first dimension B.
        """
        return read_in_turn(self.read, tokens, count, constants, state)


def read_in_turn(read, tokens, count, constants, state) -> Any:
    """Returns the state after reading `count` columns of `tokens` with `read`, one by one."""
    return ops.fori_loop(
        0, count, lambda t, state: read(ops.take(tokens, t, axis=1), constants, state)[1], state
    )
