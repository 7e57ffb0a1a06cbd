"""The interface between searches and models."""

import abc
from collections.abc import Callable
from typing import Any

from keras import ops

from keras_drill.types import Tensor


class DecodingStep(abc.ABC):
    """Interface between a model and a search: begin, read one column, compute log-probabilities.

        constants, state = step.begin(inputs, batch_size, length)
        hidden, state = step.read(tokens, constants, state)         for each column
        log_probs = step.log_probs(hidden)

    A search generates R rows of words, and a column is one position of all rows. A beam search
    generates K rows for each of the B sequences of a batch: row r belongs to sequence r // K, and
    R = B · K. A sampler has one row per sequence, R = B.

    - *Constants* are shared by all rows of a sequence and do not change, for example an encoded
      source: any nested structure of tensors whose first dimension is B. Constants are never copied
      per row. A step that combines rows with constants reshapes its rows `[R, ...]` to
      `[B, K, ...]`, as if the K rows were K positions of a query.
    - The *state* describes the tokens that each row has read so far, for example as a cache. The
      state is any nested structure of tensors whose first dimension is R, so that rows can be
      gathered. Shapes and types of the state do not change from step to step: a Transformer
      allocates caches for `length` columns at the beginning, and keeps its position as an `[R]`
      tensor.

    The t-th call of `read` reads column t of every row.

    Args:
        vocabulary_size: Number of words V.

    Example, a bigram model from a table of log-probabilities:

    >>> import keras, keras_drill
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
            `(constants, state)`, both for B sequences. The search repeats the state for its rows.
        """

    @abc.abstractmethod
    def read(self, tokens: Tensor, constants: Any, state: Any) -> tuple[Any, Any]:
        """Reads one more token of every row.

        Args:
            tokens: Integer tensor `[R]`, the tokens of the column.
            constants: From `begin`.
            state: From `begin` or the previous step, with first dimension R.

        Returns:
            `(hidden, state)`: the input of `log_probs`, and the new state.
        """

    @abc.abstractmethod
    def log_probs(self, hidden: Tensor) -> Tensor:
        """Computes float32 log-probabilities `[R, V]` of the next word; `hidden` is from `read`."""

    def scorer(self) -> Callable[[Any], Tensor]:
        """Returns the function that a search calls at every step; by default, `log_probs`.

        The function has the argument and result of `log_probs`. The search calls `scorer` once,
        before its loop. Override this method to compute once the parts that do not depend on the
        hidden state.
        """
        return self.log_probs

    def logit_scorer(self) -> Callable[[Any], Tensor] | None:
        """Returns a function like `scorer`, but for logits `[R, V]`; `None` if there are no logits.

        The log-softmax of the logits must be the log-probabilities. This method is optional. With
        logits, a beam search computes only the log-probabilities of the words that it needs.
        """
        return None

    def source_mask(self, constants: Any) -> Any:
        """Returns which positions of the source are not padding: booleans `[B, S]`.

        Override this method and `read_with_attention` for models with attention to a source. The
        `coverage_penalty` and `return_attention` of a beam search need both.
        """
        raise ValueError(
            "`coverage_penalty` and `return_attention` need a model with attention to a source. "
            f"Received: a {type(self).__name__} without attention"
        )

    def read_with_attention(
        self, tokens: Tensor, constants: Any, state: Any
    ) -> tuple[Any, Any, Any]:
        """Reads a column as `read` does, but also returns the attention to the source.

        Returns:
            `(hidden, state, attention)`: the output of `read`, and the attention weights of the
            source's positions, floats `[R, S]`, 0 where `source_mask` is false.
        """
        raise NotImplementedError

    def prefill(self, tokens: Tensor, count: Tensor, constants: Any, state: Any) -> Any:
        """Reads the first `count` columns of prompts, without computing log-probabilities.

        Args:
            tokens: Integer tensor `[B, L]`, the buffer of the search.
            count: Number of columns to read, from 0 to L: a Python integer, or a scalar tensor if
                the number is known only when the graph runs.
            constants: From `begin`.
            state: From `begin`.

        Returns:
            The state after these columns.
        """
        return read_in_turn(self.read, tokens, count, constants, state)


def read_in_turn(read, tokens, count, constants, state) -> Any:
    """Returns the state after reading `count` columns of `tokens` with `read`, one by one."""
    return ops.fori_loop(
        0, count, lambda t, state: read(ops.take(tokens, t, axis=1), constants, state)[1], state
    )
