import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import EncodedText
from keras_drill.data.truncate import truncate, truncate_text

SEPARATOR, END = 7, 9


def last_turns(row, most):
    """By lists: as many of the last turns as there is room for, or the end of the last one."""
    turns = [[]]
    for token in row:
        turns[-1].append(token)
        if token == SEPARATOR:
            turns.append([])
    if not turns[-1] and len(turns) > 1:  # the row ends with a separator
        turns[-2:] = [turns[-2] + turns[-1]]
    kept = []
    for turn in reversed(turns):
        if len(turn) + len(kept) > most:
            break
        kept = turn + kept
    return kept or row[len(row) - most :]


def random_rows(number=211):
    random = np.random.default_rng(3)
    lengths = random.integers(0, 17, size=number)
    return [
        random.choice([1, 2, 3, SEPARATOR], size=n, p=[0.3] * 3 + [0.1]).tolist() for n in lengths
    ]


@pytest.mark.parametrize("most", [1, 2, 5, 11, 23])
def test_the_last_turns_are_kept(most):
    rows = [*random_rows(), [SEPARATOR], [1, SEPARATOR], [SEPARATOR, SEPARATOR, 1, 2]]
    ids = tf.ragged.constant(rows, dtype=tf.int32)
    found = truncate(ids, most, "left", SEPARATOR)
    assert found.dtype == tf.int32
    assert found.to_list() == [last_turns(row, most) for row in rows]
    assert truncate(ids, most, "left").to_list() == [row[max(len(row) - most, 0) :] for row in rows]
    assert truncate(ids, most).to_list() == [row[:most] for row in rows]


@pytest.mark.parametrize(("side", "separator"), [("right", None), ("left", None), ("left", 7)])
def test_lines_keep_their_end(side, separator):
    rows = random_rows()
    text = EncodedText(sum(([*row, END] for row in rows), []), [len(row) + 1 for row in rows])  # noqa: RUF017
    found = truncate_text(text, 6, side, separator)
    bodies = truncate(tf.ragged.constant(rows, dtype=tf.int32), 5, side, separator).to_list()
    assert found.ids.tolist() == sum(([*row, END] for row in bodies), [])  # noqa: RUF017
    assert found.line_lengths.tolist() == [len(row) + 1 for row in bodies]
    assert truncate_text(text, 17, side, separator) is text


def test_other_sides_are_refused():
    with pytest.raises(ValueError, match=r"`side` must be one of .* Received: side='top'"):
        truncate(tf.ragged.constant([[1]]), 1, "top")
    short = EncodedText(np.array([1], "int32"), np.array([1]))
    with pytest.raises(ValueError, match="`side` must be one of"):
        truncate_text(short, 3, "top")
