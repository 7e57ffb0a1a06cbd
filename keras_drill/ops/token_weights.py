import keras
from keras import ops

from keras_drill.ops.check_sizes import check_sizes


def rank_is_unknown(tensor) -> bool:
    """Whether even the number of axes is not known while tracing, as `tf.data` may have it."""
    return getattr(tensor.shape, "rank", 0) is None


def token_weights(sample_weight, tokens, dtype: str = "float32"):
    """Weights of samples as weights of their tokens.

    Args:
        sample_weight: `[...]` of the shape of `tokens`, a prefix of that shape (one weight for a
            sequence, say), or with one more axis of size 1.
        tokens: A tensor `[...]` with one entry per token.
        dtype: Of the result.

    Returns:
        Weights of the shape of `tokens`.

    Raises:
        ValueError: The shape of `sample_weight` is another.
    """
    weights = ops.cast(ops.convert_to_tensor(sample_weight), dtype)
    message = "`sample_weight` must have the targets' shape, or a prefix of it."
    if rank_is_unknown(weights):
        flat = ops.reshape(weights, (-1, 1))
        # A weight of a prefix of the shape stands for as many tokens as follow one another.
        times = ops.size(tokens) // ops.maximum(ops.size(flat), 1)
        flat = ops.reshape(ops.broadcast_to(flat, (ops.size(flat), times)), (-1,))
        return ops.reshape(check_sizes(flat, (ops.size(tokens),), message), ops.shape(tokens))
    rank = len(tokens.shape)
    if len(weights.shape) == rank + 1 and weights.shape[-1] == 1:
        weights = ops.squeeze(weights, -1)
    known = zip(weights.shape, tokens.shape, strict=False)
    if len(weights.shape) > rank or any(
        size not in (None, 1, expected) and expected is not None for size, expected in known
    ):
        raise ValueError(
            f"`sample_weight` must have the targets' shape {_show(tokens)}, or a prefix of it. "
            f"Received: shape {_show(sample_weight)}"
        )
    sizes = [
        _or_one(size, expected)
        for size, expected in zip(ops.shape(weights), ops.shape(tokens), strict=False)
    ]
    weights = check_sizes(weights, sizes, message)
    for _ in range(rank - len(weights.shape)):
        weights = ops.expand_dims(weights, -1)
    return ops.broadcast_to(weights, ops.shape(tokens))


def _or_one(size, expected):
    """What an axis of `size` must be if it may also be 1, for all tokens alike."""
    if isinstance(size, int):
        return 1 if size == 1 else expected
    return ops.where(ops.equal(size, 1), size, expected)


def same_shape(a, b) -> bool:
    """Whether two shapes may be equal, where `None` is a size that is not known yet."""
    return len(a) == len(b) and all(x == y or None in (x, y) for x, y in zip(a, b, strict=True))


def at_least_one_token(hidden, targets, weights, dtype: str) -> tuple:
    """Hidden states, `[N]` targets and `[N]` weights or `None` of a walk.

    A batch without tokens gets one of weight 0, as there is nothing to walk over otherwise.
    """
    targets = ops.reshape(targets, (-1,))
    weights = None if weights is None else ops.reshape(weights, (-1,))
    if targets.shape[0] == 0:
        hidden = ops.pad(ops.reshape(hidden, (-1, hidden.shape[-1])), [(0, 1), (0, 0)])
        targets, weights = ops.zeros((1,), targets.dtype), ops.zeros((1,), dtype)
    return hidden, targets, weights


def unflatten(per_token, shape):
    """`[N]` to a shape; for a batch without tokens, N is 1 all the same."""
    if 0 in [size for size in shape if isinstance(size, int)]:
        per_token = per_token[:0]
    return ops.reshape(per_token, shape)


def _show(x) -> tuple:
    return tuple(keras.ops.shape(x) if not hasattr(x, "shape") else x.shape)
