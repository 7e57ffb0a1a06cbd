"""Weights with scaled optimizer steps."""

from collections.abc import Callable

import keras
from keras import ops

from keras_drill.types import Tensor


def check_learning_rate_multiplier(multiplier: float) -> None:
    """Raises `ValueError` if `multiplier` is not positive and finite."""
    if not 0 < multiplier < float("inf"):
        raise ValueError(
            "`learning_rate_multiplier` must be positive and finite. Received: "
            f"learning_rate_multiplier={multiplier}"
        )


def stored_initializer(
    initializer: keras.initializers.Initializer, multiplier: float
) -> Callable[..., Tensor]:
    """Draws a weight from a clone of `initializer`, as it is stored for `scaled_steps`."""
    return lambda shape, dtype=None: initializer.clone()(shape, dtype=dtype) / multiplier


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
