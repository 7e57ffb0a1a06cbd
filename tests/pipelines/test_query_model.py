"""What a model that is asked alone, and in a batch, must not do."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_drill.export.warmup_requests import example_inputs
from pipelines.components.infra_validator import to_lists
from pipelines.components.query_model import ask, same, tensor

X = {"x": tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (b"cat", b"cat", True),
        (b"cat", b"dog", False),
        (np.float32(1.0), np.float32(1.015), True),
        (np.float32(1.0), np.float32(1.03), False),
        (np.float32([1, 2, 0, 0]), np.float32([1, 2]), True),  # padding of a batch
        (np.float32([1, 2]), np.float32([1, 2, 0]), True),
        (np.float32([1, 2, 0]), np.float32([1, 3]), False),
        (np.int32([4, 5, 0]), np.int32([4, 5]), True),
        (np.int32([4, 5]), np.int32([4, 6]), False),
        (np.int64(1000), np.int64(1001), False),  # words are not nearly equal
    ],
)
def test_rows_are_the_same_but_for_padding_and_rounding(one, other, expected):
    assert bool(same(one, other)) == expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (lambda x: {"y": 2 * x, "z": x[:, 0]}, []),
        (lambda x: {"y": x - tf.reduce_mean(x)}, ["n: the output y of request 1 depends on other"]),
        (
            lambda x: {"y": tf.where(x > 4, x * tf.cast(len(x), x.dtype), x)},
            ["n: the output y of request 3 depends on other requests"],
        ),
        (lambda x: {"y": x[:1]}, ["n: the output y has 1 rows for 3 requests"]),
        (lambda x: {"y": x / (x - 3.0) * 0.0 / (x - 3.0)}, ["n: the output y contains NaN"]),
        (lambda x: {"y": tf.strings.as_string(x[:, 0])}, []),
    ],
)
def test_what_is_wrong_with_answers_is_told(answers, expected):
    found = list(ask("n", lambda x: answers(x), X))
    assert [told[: len(start)] for told, start in zip(found, expected, strict=False)] == expected
    assert bool(found) == bool(expected)


def test_problems_of_examples_are_told():
    def answers(x):
        return {"problems": tf.constant([b"", b"no words", b"too long"])[: len(x)]}

    assert "examples: no words" in list(ask("examples", answers, X))
    assert "n: no words" not in list(ask("n", answers, X))


def test_requests_come_back_from_json():
    texts = tensor("string", [b"\xff a".hex(), b"".hex()])
    assert texts.numpy().tolist() == [b"\xff a", b""]
    assert tensor("int32", [[1, 2]]).dtype == tf.int32


@pytest.mark.parametrize(
    "name", ["prompts", "texts", "prefixes", "examples", "max_new_tokens", "seed", "top_p"]
)
@pytest.mark.parametrize("texts", [["a cat", "é"], [b"a cat", b"\xff"]], ids=["str", "bytes"])
def test_every_input_of_a_signature_goes_through_json(name, texts):
    values = example_inputs([name], texts)[name]
    read = tensor(*json.loads(json.dumps(to_lists(values))))
    expected = tf.constant(values)
    assert read.dtype == expected.dtype
    np.testing.assert_array_equal(read, expected)
