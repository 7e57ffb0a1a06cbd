import keras
import numpy as np
from keras import ops


def check_targets(targets, vocabulary_size: int, weights=None):
    """Refuses targets outside the vocabulary, wherever they carry weight.

    Concrete targets raise at once. Inside a TensorFlow graph an assertion does. Where nothing can
    be raised (XLA, JAX) the caller turns the losses of the invalid tokens into NaN.

    Args:
        targets: `[N]` integers.
        vocabulary_size: Number of words.
        weights: `[N]`, or `None`. A token of weight 0 may have any target (-100, say).

    Returns:
        Targets that are safe to index with, and a boolean mask of the valid tokens.

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
    """Refuses wrong entries, at once where they are concrete and in a TensorFlow graph by an
    assertion. Elsewhere the caller must see to them.

    Args:
        x: A tensor `[N, ...]`.
        valid: Booleans, `[N, ...]` or of its first axes.
        expected: What the entries must be, naming the argument.

    Raises:
        ValueError: An entry is not valid.
    """
    try:
        wrong = np.asarray(x)[~np.asarray(valid)]
    except (TypeError, NotImplementedError):  # a symbolic tensor, of JAX and of TensorFlow
        wrong = None
    if wrong is not None and wrong.size:
        raise ValueError(f"{expected}. Received: {wrong[:5].tolist()}")
    if wrong is None and keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.debugging.Assert(ops.all(valid), [f"{expected}. Received:", x])
