"""The rows of a search.

Shapes: R rows, L columns (positions), S positions of the source.
"""

from typing import Any, NamedTuple

from keras import ops


class Rows(NamedTuple):
    """The state of all rows (sequences or beams) of a search: their tokens and their lengths.

    Shape letters: R rows, L columns (positions of a row), S positions of the source.

    Attributes:
        index: Integer scalar, the column that the search writes next. In a call of `ends` (see
            `Search.begin`), the column that the search has just written.
        tokens: Integer tensor `[R, L]`: prompt, generated tokens, padding.
        log_probs: Float32 tensor `[R, L]`: log-probability of each generated word by the model,
            before the sampler and constraints change the probabilities; 0 for prompt and padding.
        lengths: Integer tensor `[R]`: number of tokens with the prompt, without padding.
        finished: Boolean tensor `[R]`: true for rows that do not change any more.
        prompt_lengths: Integer tensor `[R]`: number of tokens of each row's prompt.
        max_lengths: Integer tensor `[R]`: the maximum length of each row, including its prompt.
        end_token: Integer scalar: the token that ends a row; -1 for none.
        attention: Float32 tensor `[R, L, S]`: attention to the source for each generated word, and
            0 for other columns. During `Search.extend`, column `index` already has the attention
            for the next word. S is 0 unless `Search.needs_attention` is true.
        source_mask: Boolean tensor `[R, S]`: true for positions of the source that are not padding.
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
        """Boolean tensor `[R]`: true for rows whose prompt has a token in column `index`."""
        return self.index < self.prompt_lengths

    @property
    def next_places(self) -> Any:
        """Boolean tensor `[R, L]`: true where the search writes a generated word next.

        In a row that is not finished and whose prompt has been read, this is column `index`. Other
        rows have no such place.
        """
        columns = ops.arange(ops.shape(self.tokens)[1], dtype="int32")  # [L]
        is_open = ops.logical_not(ops.logical_or(self.is_in_prompt, self.finished))
        return ops.logical_and(columns == self.index, is_open[:, None])
