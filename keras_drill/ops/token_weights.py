import keras
from keras import ops

from keras_drill.ops.check_sizes import check_sizes


def rank_is_unknown(tensor) -> bool:
    """Returns whether the number of axes is unknown while tracing, as `tf.data` allows."""
    return getattr(tensor.shape, "rank", 0) is None


def token_weights(sample_weight, tokens, dtype: str = "float32"):
    """Returns one weight for each token, from weights of tokens or of whole samples.

    Args:
        sample_weight: Weights of the shape of `tokens`, or of a prefix of that shape (for example
            one weight per sequence). A further last axis of size 1 is allowed.
        tokens: A tensor `[...]` with one entry per token.
        dtype: Dtype of the result.

    Returns:
        Weights of the shape of `tokens`.

    Raises:
        ValueError: `sample_weight` has another shape.
    """
    weights = ops.cast(ops.convert_to_tensor(sample_weight), dtype)
    message = "`sample_weight` must have the targets' shape, or a prefix of it."
    if rank_is_unknown(weights):
        flat = ops.reshape(weights, (-1, 1))
        # A prefix of the shape: each weight is repeated for the tokens of its sample.
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
    """Returns the size that an axis must have: `expected`, or 1 if `size` is 1 (broadcasting)."""
    if isinstance(size, int):
        return 1 if size == 1 else expected
    return ops.where(ops.equal(size, 1), size, expected)


def same_shape(a, b) -> bool:
    """Returns whether two shapes may be equal. `None` stands for an unknown size."""
    return len(a) == len(b) and all(x == y or None in (x, y) for x, y in zip(a, b, strict=True))


def at_least_one_token(hidden, targets, weights, dtype: str) -> tuple:
    """Flattens targets and weights, and adds a token of weight 0 to a batch without tokens.

    The fused loss iterates over tiles of tokens, and needs at least one.

    Args:
        hidden: `[..., d]`, hidden states.
        targets: `[...]`, integers.
        weights: `[...]`, or `None`.
        dtype: Dtype of the added token's weight.

    Returns:
        Hidden states, targets `[N]`, and weights `[N]` or `None`.
    """
    targets = ops.reshape(targets, (-1,))
    weights = None if weights is None else ops.reshape(weights, (-1,))
    if targets.shape[0] == 0:
        hidden = ops.pad(ops.reshape(hidden, (-1, hidden.shape[-1])), [(0, 1), (0, 0)])
        targets, weights = ops.zeros((1,), targets.dtype), ops.zeros((1,), dtype)
    return hidden, targets, weights


def unflatten(per_token, shape):
    """Reshapes `[N]` to `shape`, and drops the token that `at_least_one_token` added."""
    if 0 in [size for size in shape if isinstance(size, int)]:
        per_token = per_token[:0]
    return ops.reshape(per_token, shape)


def _show(x) -> tuple:
    return tuple(keras.ops.shape(x) if not hasattr(x, "shape") else x.shape)
