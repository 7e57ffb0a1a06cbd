"""Clips matrix products that overflow float16."""

import keras
from keras import ops

from keras_drill.types import Tensor

_LARGEST_FLOAT16 = 65504.0


def saturated(products: Tensor, dtype: str) -> Tensor:
    """Casts matrix products to a wider dtype, and replaces float16's infinities by ±65,504.

    An infinite logit makes the loss NaN. Loss scaling cannot help, because the overflow is not in
    the gradients: every later step would be skipped. With a finite logit, training continues.

    Args:
        products: A tensor of any shape.
        dtype: "float32" or "float64".

    Returns:
        The products in `dtype`. Products of float16 matrices are limited to ±65,504, the largest
        number in float16.

    Example:

    >>> saturated(keras.ops.array([3.0, float("inf")], "float16"), "float32").numpy().tolist()
    [3.0, 65504.0]
    """
    is_half = keras.backend.standardize_dtype(products.dtype) == "float16"
    products = ops.cast(products, dtype)
    return ops.clip(products, -_LARGEST_FLOAT16, _LARGEST_FLOAT16) if is_half else products
