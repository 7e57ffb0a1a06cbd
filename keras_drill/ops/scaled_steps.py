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
    """Returns an initializer that draws from `initializer` and divides by `multiplier`.

    This is how `scaled_steps` expects a weight to be stored.
    """
    return lambda shape, dtype=None: initializer.clone()(shape, dtype=dtype) / multiplier


def scaled_steps(stored: Tensor, multiplier: float) -> Tensor:
    """Makes the optimizer's steps of one weight `multiplier` times as large.

    The layer stores the weight w divided by the multiplier c. This function returns w:

        w = c v

    The optimizer updates v with the gradient of the loss with respect to w, so each step moves w
    `c` times as far as without this function. The factor is the same for optimizers whose steps
    grow with the gradient (SGD) and for others (Adam). Gradient clipping does not depend on `c`.
    Weight decay shrinks v and w by the same share.

    Args:
        stored: `v`, float tensor.
        multiplier: `c`, positive.

    Returns:
        `w`, of the shape of `v`.
    """
    if multiplier == 1:
        return stored
    return ops.stop_gradient(multiplier * stored) + (stored - ops.stop_gradient(stored))
