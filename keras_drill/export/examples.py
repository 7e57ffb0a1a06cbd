"""Texts in serialized `tf.Example`s: what the signature `examples` of every model reads.

B examples.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class TextFeature:
    """One feature of a batch of examples.

    Args:
        texts: Strings `[B]`, `""` where an example has none.
        has: Booleans `[B]`, whether it has one.
    """

    texts: tf.Tensor
    has: tf.Tensor


def read_texts(
    examples: Any, required: Sequence[str], optional: Sequence[str] = ()
) -> tuple[dict[str, TextFeature], tf.Tensor]:
    """Features of examples that are one text each, of which an example may lack some.

    Other features are passed over. What is no `tf.Example` at all, and one of these features with
    numbers in it, is TensorFlow's error and fails the request.

    Args:
        examples: Serialized examples, a string tensor `[B]`.
        required: Names of features, of which an example must have one at least.
        optional: Names of further ones.

    Returns:
        The features by name, and the problems: strings `[B]`, `""` where an example is right. One
        that has a problem has no feature.

    Example:

    >>> from keras_drill.data.serialize_examples import serialize_examples
    >>> examples = serialize_examples({"text": [b"a cat", b""]})
    >>> features, problems = read_texts([*examples, b""], ["text"])
    >>> features["text"].texts.numpy().tolist(), features["text"].has.numpy().tolist()
    ([b'a cat', b'', b''], [True, True, False])
    >>> problems.numpy().tolist()
    [b'', b'', b'the example must have a feature `text`']
    """
    names = [*required, *optional]
    parsed = tf.io.parse_example(examples, {name: tf.io.RaggedFeature(tf.string) for name in names})
    counts = {name: parsed[name].row_lengths() for name in names}
    is_there = tf.reduce_any([counts[name] > 0 for name in required], axis=0)
    wanted = " or ".join(f"`{name}`" for name in required)
    problems = tf.where(is_there, "", f"the example must have a feature {wanted}")
    for name, count in counts.items():
        told = tf.strings.join(
            [f"the feature `{name}` must be one text, not ", tf.strings.as_string(count)]
        )
        problems = tf.where((count > 1) & (problems == ""), told, problems)
    features = {}
    for name, count in counts.items():
        has = (count == 1) & (problems == "")
        first = parsed[name].to_tensor("", shape=[None, 1])[:, 0]
        features[name] = TextFeature(tf.where(has, first, ""), has)
    return features, problems
