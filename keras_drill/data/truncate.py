"""Truncates long texts at their beginning or their end.

Shapes: B texts, T tokens of the longest one.
"""

import tensorflow as tf

from keras_drill.data.encoded_text import EncodedText

TRUNCATION_SIDES = ("right", "left")


def truncate(
    ids: tf.RaggedTensor,
    max_tokens: int,
    side: str = "right",
    separator_id: int | None = None,
) -> tf.RaggedTensor:
    """Truncates each row to at most `max_tokens` tokens. Runs in graphs.

    With `side="left"` and `separator_id`, the function drops whole turns of a dialogue, the oldest
    first, so that the rest begins after a separator. If the last turn alone is too long, its
    beginning is dropped.

    Args:
        ids: Integers, ragged `[B, (T)]`.
        max_tokens: Largest number of tokens to keep.
        side: `"right"` cuts the end of a row, `"left"` its beginning.
        separator_id: The token between turns; `None` if rows have no turns. Only used with
            `"left"`.

    Example, with the separator 0:

    >>> ids = tf.ragged.constant([[1, 0, 2, 3, 0, 4], [5, 6, 7, 8]])
    >>> truncate(ids, 3).to_list()
    [[1, 0, 2], [5, 6, 7]]
    >>> truncate(ids, 3, "left", separator_id=0).to_list()
    [[4], [6, 7, 8]]
    >>> truncate(ids, 4, "left", separator_id=0).to_list()
    [[2, 3, 0, 4], [5, 6, 7, 8]]
    """
    return tf.ragged.boolean_mask(ids, truncation_mask(ids, max_tokens, side, separator_id))


def truncation_mask(
    ids: tf.RaggedTensor,
    max_tokens: int,
    side: str = "right",
    separator_id: int | None = None,
) -> tf.RaggedTensor:
    """Returns a mask of the tokens that `truncate` keeps: booleans, ragged `[B, (T)]`."""
    check_truncation_side(side, "side")
    lengths, rows = ids.row_lengths(), ids.value_rowids()
    columns = tf.ragged.range(lengths).flat_values
    if side == "right":
        return ids.with_flat_values(columns < max_tokens)
    first = tf.maximum(lengths - max_tokens, 0)  # [B]
    if separator_id is not None:
        flat = ids.flat_values
        before = tf.concat([flat[:1], flat[:-1]], axis=0)
        begins_turn = (columns == 0) | (before == separator_id)
        is_place = begins_turn & (columns >= tf.gather(first, rows))
        places = tf.where(is_place, columns, columns.dtype.max)
        turn = tf.math.unsorted_segment_min(places, rows, ids.nrows())
        first = tf.where(turn < lengths, turn, first)
    return ids.with_flat_values(columns >= tf.gather(first, rows))


def truncate_text(
    text: EncodedText,
    max_length: int,
    side: str = "right",
    separator_id: int | None = None,
) -> EncodedText:
    """Truncates the lines of an `EncodedText`. Each line keeps its end token.

    With `side="left"` and `separator_id`, the function drops whole turns of a dialogue, the oldest
    first, so that the rest begins after a separator. If the last turn alone is too long, its
    beginning is dropped.

    Args:
        text: The `EncodedText` to truncate.
        max_length: Largest number of tokens of a line, including the end token, at least 1.
        side: `"right"` drops tokens at the end of a line, `"left"` at its beginning.
        separator_id: Id of the token between turns; `None` if lines have no turns. Only used with
            `"left"`.

    Returns:
        An `EncodedText`: `text` itself if no line is too long.

    Example, with the separator 0 and the end token 9:

    >>> from keras_drill.data import EncodedText, truncate_text
    >>> text = EncodedText(ids=[3, 0, 4, 5, 9, 3, 9], line_lengths=[5, 2])
    >>> truncate_text(text, 3, "left", separator_id=0).ids.tolist()
    [4, 5, 9, 3, 9]
    """
    check_truncation_side(side, "side")
    if text.line_lengths.max(initial=0) <= max_length:
        return text
    rows = tf.RaggedTensor.from_row_lengths(text.ids, text.line_lengths)
    kept = truncate(rows[:, :-1], max_length - 1, side, separator_id)
    kept = tf.concat([kept, rows[:, -1:]], axis=1)
    return EncodedText(kept.flat_values.numpy(), kept.row_lengths().numpy())


def check_truncation_side(side: str, name: str) -> None:
    """Raises `ValueError` if the argument `name` is not one of `TRUNCATION_SIDES`."""
    if side not in TRUNCATION_SIDES:
        raise ValueError(f"`{name}` must be one of {TRUNCATION_SIDES}. Received: {name}={side!r}")
