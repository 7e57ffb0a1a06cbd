"""The protocol between samplers and models."""

from typing import Any


class DecodingStep:
    """One step of a language model, with the state it carries: what a sampler drives.

    A sampler (or a beam search) knows nothing about models beyond these two methods. The state is
    any nested structure of tensors whose first dimension is the batch, so that rows can be
    gathered from it. Its shapes and types stay the same from step to step: a Transformer keeps
    caches as wide as the buffer `prefill` is given, and its position as a `[B]` tensor.

    All rows advance together: step number `t` reads column `t` of the buffer in every row.

    Args:
        vocabulary_size: Number of words V.
    """

    def __init__(self, vocabulary_size: int):
        self.vocabulary_size = vocabulary_size

    def prefill(self, tokens, count) -> Any:
        """Reads the first `count` columns, without computing any distribution.

        Args:
            tokens: Integer tensor `[B, L]`, the buffer that will be filled.
            count: Columns to read, from 0 to L: a Python integer, or a scalar tensor where the
                number is known only when the graph runs.

        Returns:
            The state after these columns.
        """
        raise NotImplementedError

    def __call__(self, tokens, state) -> tuple[Any, Any]:
        """Reads one more column.

        Args:
            tokens: Integer tensor `[B]`.
            state: What `prefill` or the previous step returned.

        Returns:
            `(log_probs, state)`: float32 log-probabilities `[B, V]` of the next word, and the new
            state.
        """
        raise NotImplementedError
