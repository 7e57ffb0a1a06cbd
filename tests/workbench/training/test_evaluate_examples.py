import math

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.evaluate_examples import evaluate_examples, first_examples

LINES = [b"a b c", b"", b"a longer line of words", b"b"] * 17


def probability(word):
    return -float(len(word) + 1)


def answer(examples):
    """A model whose words are as probable as they are short; pads with noise."""
    texts = tf.io.parse_example(examples, {"text": tf.io.FixedLenFeature([], tf.string)})["text"]
    words = [[*text.decode().split(), "<eos>"] for text in texts.numpy()]
    width = max(map(len, words)) + 2
    return {
        "words": tf.constant([row + ["noise"] * (width - len(row)) for row in words]),
        "log_probs": tf.constant(
            [[*map(probability, row), *[7.0] * (width - len(row))] for row in words]
        ),
        "lengths": tf.constant([len(row) for row in words]),
        "answers": tf.strings.upper(texts),
        "problems": tf.fill([len(words)], ""),
    }


def test_examples_are_evaluated_in_their_order():
    evaluated = evaluate_examples(answer, {"text": LINES})
    words = [[*line.decode().split(), "<eos>"] for line in LINES]
    assert [word.decode() for word in evaluated.words] == [word for row in words for word in row]
    expected = [probability(word) for row in words for word in row]
    np.testing.assert_array_equal(evaluated.log_probs, expected)
    assert evaluated.perplexity == pytest.approx(math.exp(-np.mean(expected)))
    sums = [sum(map(probability, row)) for row in words]
    np.testing.assert_allclose(evaluated.line_log_probs, sums)
    assert list(evaluated.answers) == [line.decode().upper() for line in LINES]


def test_what_the_model_does_not_take_is_an_error():
    def refuse(examples):
        told = answer(examples)
        return {**told, "problems": tf.fill(told["lengths"].shape, "no feature `source`")}

    with pytest.raises(RunError, match="no feature `source`"):
        evaluate_examples(refuse, {"text": LINES})
    with pytest.raises(RunError, match="must have at least one line"):
        evaluate_examples(answer, {"text": []})


def test_first_examples():
    assert first_examples({"source": LINES, "target": iter(LINES)}, 2) == {
        "source": LINES[:2],
        "target": LINES[:2],
    }
