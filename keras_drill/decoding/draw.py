"""Drawing from a categorical distribution with a given random number."""

from keras import ops


def draw(probabilities, uniforms):
    """Draws one index per row by inverting the cumulative distribution.

    An index whose probability is 0 is never drawn, whatever the rounding of the sums.

    Args:
        probabilities: Float tensor `[B, n]`, non-negative, not necessarily summing to 1.
        uniforms: Float tensor `[B]` in [0, 1).

    Returns:
        Integer tensor `[B]`.

    Example:

    >>> import keras
    >>> index = draw(keras.ops.array([[0.25, 0.0, 0.75]]), keras.ops.array([0.25]))
    >>> int(index[0])
    2
    """
    cumulative = ops.cumsum(probabilities, axis=-1)  # [B, n]
    # Parallel prefix sums are not monotone to the last bit: impossible indices are masked.
    cumulative = ops.where(probabilities > 0, cumulative, 0.0)
    threshold = uniforms[:, None] * ops.max(cumulative, axis=-1, keepdims=True)  # [B, 1]
    return ops.argmax(ops.cast(cumulative > threshold, "int32"), axis=-1)
