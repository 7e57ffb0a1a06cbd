"""Conversion between arrays and `TensorProto` messages."""

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from keras_drill.workbench.serving.errors import invalid
from keras_drill.workbench.serving.limits import Limits

# The field of `TensorProto` for the values of each NumPy type, given as kind and size.
_FIELDS = {
    "f4": "float_val",
    "f8": "double_val",
    "i1": "int_val",
    "i2": "int_val",
    "i4": "int_val",
    "i8": "int64_val",
    "u1": "int_val",
    "u2": "int_val",
    "u4": "uint32_val",
    "u8": "uint64_val",
    "b1": "bool_val",
}


def read_tensor(name: str, tensor: Any, limits: Limits) -> np.ndarray:
    """Converts a `TensorProto` to an array.

    A small message can declare a huge shape, so the shape is checked before memory is allocated.

    Args:
        name: Name of the input, for error messages.
        tensor: The `TensorProto`.
        limits: Limits of the shape.
    """
    if tensor.tensor_shape.unknown_rank:
        raise invalid(f"Input {name} has no shape: set `tensor_shape` of its TensorProto")
    limits.check_shape(name, tuple(dim.size for dim in tensor.tensor_shape.dim))
    try:
        array = tf.make_ndarray(tensor)
    except (TypeError, ValueError) as error:
        raise invalid(f"Input {name} cannot be read: {error}") from error
    return array.astype(object) if array.dtype.kind in "SU" else array


def write_tensor(array: np.ndarray) -> Any:
    """Converts an array to a `TensorProto` with a field of values, as TensorFlow Serving does.

    `tf.make_tensor_proto` would write raw bytes, but clients may read fields such as `float_val`.

    Example:

    >>> write_tensor(np.float32([2, 3])).float_val
    [2.0, 3.0]
    """
    dtype = tf.string if array.dtype == object else tf.as_dtype(array.dtype)
    field = "string_val" if dtype == tf.string else _FIELDS.get(array.dtype.str[1:])
    if field is None:  # for example half precision
        return tf.make_tensor_proto(array)
    shape = tf.TensorShape(array.shape).as_proto()
    values = {field: array.ravel().tolist()}
    return tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=shape, **values)
