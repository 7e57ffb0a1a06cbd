import numpy as np
import pytest
import tensorflow as tf

from keras_drill.data import Paragraphs, TextLines
from keras_drill.data.lines import ListedLines
from keras_drill.data.paragraphs import is_wrapped, join_wrapped_lines

WORDS = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was "
    "the age of foolishness, it was the epoch of belief, it was the epoch of unbelief. "
)


def wrapped(width, number=19):
    """A text of several paragraphs, wrapped."""
    lines, line = [], ""
    for word in (WORDS * number).split():
        if len(line) + len(word) >= width:
            lines.append(line.strip())
            line = ""
        line += f"{word} "
    return [line.encode() for line in lines]


def test_lines_up_to_an_empty_one_are_joined(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n \nthe cat \n  sat\n\n\nthe dog\n\nran\naway")
    lines = Paragraphs(TextLines(path))
    assert list(lines) == [b"the cat sat", b"the dog", b"ran away"] == list(lines)
    assert [len(block) for block in lines.blocks(2)] == [2, 1]
    before = lines.fingerprint()
    assert before != TextLines(path).fingerprint()
    path.write_text("the cat\n")
    assert lines.fingerprint() != before


def test_texts_in_graphs_are_joined_as_lines_are():
    random = np.random.default_rng(3)
    texts = ["".join(random.choice(list("ab \t\n\n\né"), 31)) for _ in range(199)]
    found = join_wrapped_lines(tf.constant(texts)).numpy().tolist()
    for text, joined in zip(texts, found, strict=True):
        expected = list(Paragraphs(ListedLines(text.split("\n"))))
        assert joined.removesuffix(b"\n").strip() == b"\n".join(expected), repr(text)
        end = text[len(text.rstrip()) :]
        assert joined.endswith(b"\n") == (bool(expected) and end.count("\n") > 1)


@pytest.mark.parametrize("width", [60, 70, 79])
def test_wrapped_text_is_recognised(width):
    assert is_wrapped(wrapped(width))


@pytest.mark.parametrize(
    "lines",
    [
        wrapped(200),
        wrapped(70)[:13],
        [f"{WORDS[: 20 + 3 * (n % 19)]}.".encode() for n in range(61)],
        [f"{'x' * (n % 7)} = f({n})".encode() for n in range(61)],
        [b""] * 61,
        [],
    ],
)
def test_other_text_is_not(lines):
    assert not is_wrapped(lines)


def lines_of(*parts, end=b""):
    """Lines of the given numbers and lengths."""
    return [b"x" * (length - len(end)) + end for number, length in parts for _ in range(number)]


@pytest.mark.parametrize(
    ("wrapped_text", "other_text"),
    [
        (lines_of((20, 70)), lines_of((19, 70))),
        (lines_of((20, 40)), lines_of((20, 39))),
        (lines_of((20, 100)), lines_of((20, 101))),
        (lines_of((11, 70), (9, 10)), lines_of((10, 70), (10, 10))),  # more than half is full
        (lines_of((10, 70), (10, 57)), lines_of((10, 70), (10, 56))),  # above 0.8 of the width
        (lines_of((19, 50), (1, 200)), lines_of((18, 50), (2, 200))),
        (
            lines_of((15, 70)) + lines_of((5, 70), end=b"."),
            lines_of((14, 70)) + lines_of((6, 70), end=b"."),
        ),
    ],
    ids=["few", "narrow", "wide", "full", "nearly full", "quantile", "ends"],
)
def test_where_wrapped_text_begins(wrapped_text, other_text):
    assert is_wrapped([*wrapped_text, b" "]) and not is_wrapped([*other_text, b" "])
