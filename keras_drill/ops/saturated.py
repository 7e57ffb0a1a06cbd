"""Products that are larger than their dtype can tell."""

import keras
from keras import ops

from keras_drill.types import Tensor

_LARGEST_FLOAT16 = 65504.0


def saturated(products: Tensor, dtype: str) -> Tensor:
    """Matrix products in a wider dtype; those that float16 made infinite as its largest number.

    Infinite scores have no probabilities. No loss scaling mends that, as the loss is not what was
    too large, so that every later step would be skipped. Of finite ones the gradient leads back.

    Args:
        products: Of any shape.
        dtype: float32 or float64.

    Example:

    >>> saturated(keras.ops.array([3.0, float("inf")], "float16"), "float32").numpy().tolist()
    [3.0, 65504.0]
    """
    is_half = keras.backend.standardize_dtype(products.dtype) == "float16"
    products = ops.cast(products, dtype)
    return ops.clip(products, -_LARGEST_FLOAT16, _LARGEST_FLOAT16) if is_half else products
