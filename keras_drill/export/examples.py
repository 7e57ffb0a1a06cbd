"""Reads texts from serialized `tf.Example`s, for the signature `examples` of models.

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
        texts: Strings `[B]`; `""` if an example does not have the feature.
        has: Booleans `[B]`, whether an example has the feature.
    """

    texts: tf.Tensor
    has: tf.Tensor


def read_texts(
    examples: Any, required: Sequence[str], optional: Sequence[str] = ()
) -> tuple[dict[str, TextFeature], tf.Tensor]:
    """Reads text features of examples. Features may be missing.

    Other features are ignored. If an input is not a `tf.Example`, or one of the named features has
    numbers, TensorFlow raises an error and the request fails.

    Args:
        examples: Serialized examples, a string tensor `[B]`.
        required: Names of features. An example must have at least one of them.
        optional: Names of optional features.

    Returns:
        A pair. First a dictionary from names to `TextFeature`s. Second the problems, strings `[B]`,
        `""` for valid examples. Examples with a problem have no features.

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
