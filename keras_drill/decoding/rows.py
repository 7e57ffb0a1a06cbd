"""The rows that a search has written.

R rows, L columns, S positions of the source.
"""

from typing import Any, NamedTuple

from keras import ops


class Rows(NamedTuple):
    """The tokens so far, and where they end.

    Attributes:
        index: Integer scalar, the column that comes next (or just came, for `ends`).
        tokens: Integer tensor `[R, L]`: prompt, generated tokens, padding.
        log_probs: Float32 tensor `[R, L]`: the log-probability that the model itself gave to each
            word that was written (whatever the temperature, the words left out or forbidden), 0 at
            the prompt and at the padding.
        lengths: Integer tensor `[R]`: how many tokens are not padding.
        finished: Boolean tensor `[R]`: rows that are frozen.
        prompt_lengths: Integer tensor `[R]`.
        max_lengths: Integer tensor `[R]`: the length at which a row ends at last.
        end_token: Integer scalar: the token that ends a row, -1 for none.
        attention: Float32 tensor `[R, L, S]`: what the model attended to for each word that was
            written, that of column `index` among them in `extend`; 0 elsewhere. S is 0 unless the
            search `needs_attention`.
        source_mask: Boolean tensor `[R, S]`: which positions of the source there are.
    """

    index: Any
    tokens: Any
    log_probs: Any
    lengths: Any
    finished: Any
    prompt_lengths: Any
    max_lengths: Any
    end_token: Any
    attention: Any
    source_mask: Any

    @property
    def is_in_prompt(self) -> Any:
        """Boolean tensor `[R]`: rows whose prompt has a token at the column that comes next."""
        return self.index < self.prompt_lengths

    @property
    def next_places(self) -> Any:
        """Boolean tensor `[R, L]`: the next column, in rows that receive a word there."""
        columns = ops.arange(ops.shape(self.tokens)[1], dtype="int32")  # [L]
        is_open = ops.logical_not(ops.logical_or(self.is_in_prompt, self.finished))
        return ops.logical_and(columns == self.index, is_open[:, None])
