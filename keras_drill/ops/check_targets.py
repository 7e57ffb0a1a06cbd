import keras
import numpy as np
from keras import ops


def check_targets(targets, vocabulary_size: int, weights=None):
    """Checks that targets with a weight other than 0 are in the vocabulary.

    Concrete targets are checked at once, symbolic ones by an assertion in the TensorFlow graph.
    XLA and JAX cannot raise: the caller must turn the losses of invalid tokens into NaN.

    Args:
        targets: `[N]` integers.
        vocabulary_size: Number of words.
        weights: `[N]`, or `None`. A token of weight 0 may have any target, for example -100.

    Returns:
        - `[N]`, the targets, with 0 in place of those outside the vocabulary.
        - `[N]` booleans, False for invalid tokens: their target is outside the vocabulary, and
          their weight is not 0.

    Raises:
        ValueError: A target is out of range.
    """
    valid = ops.logical_and(targets >= 0, targets < vocabulary_size)
    counted_valid = valid if weights is None else ops.logical_or(valid, weights == 0)
    check_entries(
        targets, counted_valid, f"`targets` must be word indices in [0, {vocabulary_size})"
    )
    return ops.where(valid, targets, ops.zeros_like(targets)), counted_valid


def check_entries(x, valid, expected: str) -> None:
    """Raises an error if an entry of `x` is not valid.

    Concrete tensors are checked at once, symbolic tensors of TensorFlow by an assertion in the
    graph. Symbolic tensors of JAX are not checked.

    Args:
        x: A tensor `[N, ...]`.
        valid: Booleans, of the shape of `x` or of the first axes of that shape.
        expected: The beginning of the error message: the argument's name, and what its entries
            must be.

    Raises:
        ValueError: An entry of a concrete tensor is not valid.
    """
    try:
        wrong = np.asarray(x)[~np.asarray(valid)]
    except (TypeError, NotImplementedError):  # a symbolic tensor: of JAX, of TensorFlow
        wrong = None
    if wrong is not None and wrong.size:
        raise ValueError(f"{expected}. Received: {wrong[:5].tolist()}")
    if wrong is None and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.debugging.Assert(ops.all(valid), [f"{expected}. Received:", x])
