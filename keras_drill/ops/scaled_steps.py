"""Weights on which every optimizer takes steps of another size."""

from keras import ops

from keras_drill.types import Tensor


def scaled_steps(stored: Tensor, multiplier: float) -> Tensor:
    """The value of a weight that is stored divided by `multiplier`.

        w = c v,    with the gradient of w for that of v

    An optimizer's step on `v` then moves `w` by `c` times what it would move a weight of its own,
    whether steps grow with gradients (SGD) or not (Adam): no other way of scaling is right for
    both, and for the norm that gradients are clipped to. Weight decay shrinks `v` and `w` alike.

    Args:
        stored: `v`, float tensor.
        multiplier: `c`, positive.

    Returns:
        `w`, of the shape of `v`.
    """
    if multiplier == 1:
        return stored
    return ops.stop_gradient(multiplier * stored) + (stored - ops.stop_gradient(stored))
