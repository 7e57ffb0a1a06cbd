"""Refuses tensors whose sizes turn out to be wrong only when a graph runs."""

import re
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


def check_sizes(x: Any, sizes: Sequence[Any], message: str) -> Any:
    """Returns `x`, every axis of which must have the size that is expected.

    Sizes that are known while tracing raise at once. Others are compared when a TensorFlow graph
    runs. XLA leaves assertions out: there another number of entries fails, in an operation that is
    named by the message, and other sizes with as many entries pass.

    Args:
        x: A tensor.
        sizes: For each axis an integer, a scalar tensor, or `None` for any size.
        message: What is expected, and what to do: whole sentences.

    Raises:
        ValueError: A size is another.
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
    # Sizes that were only compared stay open: what is made of them waits for the comparison.
    checked.set_shape(
        [
            a if b is None or isinstance(b, int) else None
            for a, b in zip(x.shape, sizes, strict=True)
        ]
    )
    return checked
