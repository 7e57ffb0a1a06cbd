"""Checks sizes of tensors, also sizes that are known only when a graph runs."""

import re
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


def check_sizes(x: Any, sizes: Sequence[Any], message: str) -> Any:
    """Checks the size of each axis of `x`, and returns `x`.

    Sizes that are known while tracing are checked at once. A TensorFlow graph checks the others
    when the graph runs. XLA drops assertions: a wrong number of entries still fails there, in an
    operation whose name is `message`. XLA does not detect wrong sizes with the right number of
    entries.

    Args:
        x: A tensor.
        sizes: For each axis an integer, a scalar tensor, or `None` for any size.
        message: The beginning of the error message, in whole sentences: what is expected, and what
            to do.

    Returns:
        `x`. Use the returned tensor instead of `x`, so that the check is part of the graph.

    Raises:
        ValueError: A size that is known while tracing is wrong.
    """
    found = ops.shape(x)
    pairs = [(a, b) for a, b in zip(found, sizes, strict=True) if a is not None and b is not None]
    known = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
    if any(a != b for a, b in known):
        raise ValueError(f"{message} Received: shape {tuple(x.shape)}")
    if len(known) == len(pairs) or keras.backend.backend() != "tensorflow":
        return x
    import tensorflow as tf

    is_right = tf.reduce_all([tf.equal(a, b) for a, b in pairs])
    assertion = tf.debugging.Assert(is_right, [f"{message} Received: shape", tf.shape(x)])
    with tf.control_dependencies([assertion]):
        x = tf.identity(x)  # graph optimisation may remove a reshape with its control inputs
    expected = [a if b is None else b for a, b in zip(found, sizes, strict=True)]
    checked = tf.reshape(x, expected, name=re.sub(r"[^A-Za-z0-9]+", "_", message).strip("_"))
    # Sizes that are compared at run time stay unknown: operations that read the shape then depend
    # on the comparison.
    checked.set_shape(
        [
            a if b is None or isinstance(b, int) else None
            for a, b in zip(x.shape, sizes, strict=True)
        ]
    )
    return checked
