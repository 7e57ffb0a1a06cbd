"""Conversion of a request's JSON to arrays, as in TensorFlow Serving's REST interface."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_drill.workbench.serving.errors import ServingError, invalid
from keras_drill.workbench.serving.json_values import (
    decode_base64,
    encode,
    is_base64,
    json_type,
    shown,
)
from keras_drill.workbench.serving.limits import Limits
from keras_drill.workbench.serving.servable import type_name

Arrays = dict[str, np.ndarray]
_DEEPEST = 32
_FLOATS = {tf.float32: (24, "float"), tf.float64: (53, "double")}  # bits of the mantissa


def read_inputs(
    document: Mapping[str, Any], infos: Mapping[str, Any], limits: Limits
) -> tuple[Arrays, bool]:
    """Reads the inputs of a request to `:predict`.

    Args:
        document: The request, with `instances` (rows) or `inputs` (columns).
        infos: A `TensorInfo` for every input, by name.
        limits: Limits of the inputs, which are checked as early as possible.

    Returns:
        Arrays by name, with strings as objects. Then whether the request has `instances` (rows), so
        that the response must have rows too.

    Example:

    >>> from tensorflow.core.protobuf import meta_graph_pb2
    >>> infos = {"x": meta_graph_pb2.TensorInfo(dtype=tf.int32.as_datatype_enum)}
    >>> read_inputs({"instances": [3, 5]}, infos, Limits())
    ({'x': array([3, 5], dtype=int32)}, True)
    """
    if not infos:
        raise invalid("Failed to get input map for signature")
    if "instances" in document and "inputs" in document:
        raise invalid(
            f"JSON Value: {shown(document)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    if "instances" in document:
        return _read_rows(document, dict(sorted(infos.items())), limits), True
    if "inputs" in document:
        return _read_columns(document["inputs"], dict(sorted(infos.items())), limits), False
    raise invalid("Missing 'inputs' or 'instances' key")


def _read_rows(document: Mapping[str, Any], infos: Mapping[str, Any], limits: Limits) -> Arrays:
    rows = document["instances"]
    if not isinstance(rows, list):
        raise invalid(f"JSON Value: {shown(document)} Excepting 'instances' to be an list/array")
    if not rows:
        raise invalid(f"JSON Value: {shown(document)} No values in 'instances' array")
    if len(rows) > limits.rows:
        raise invalid(f"There are {len(rows)} instances; at most {limits.rows} are allowed")
    are_objects = _is_object(rows[0])
    if not are_objects and len(infos) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    columns: dict[str, list[np.ndarray]] = {name: [] for name in infos}
    for index, row in enumerate(rows):
        if are_objects != _is_object(row):
            expected, got = ("object", "list") if are_objects else ("value/list", "object")
            raise invalid(f"Expecting {expected} but got {got} at item {index} of input list")
        cells = row if are_objects else {next(iter(infos)): row}
        for name, value in cells.items():
            key = f" key: {name}" if are_objects else ""
            try:
                _add_cell(name, value, infos, columns, limits)
            except ServingError as error:
                raise invalid(
                    f"Failed to process element: {index}{key} of 'instances' list. Error: "
                    f"{error.code}: {error.message}"
                ) from error
        if cells.keys() != infos.keys():
            raise invalid(
                f"Failed to process element: {index} of 'instances' list. JSON object: "
                f"{shown(row)} keys must be equal to: {','.join(infos)}"
            )
    return {name: np.stack(arrays) for name, arrays in columns.items()}


def _add_cell(
    name: str,
    value: Any,
    infos: Mapping[str, Any],
    columns: Mapping[str, list[np.ndarray]],
    limits: Limits,
) -> None:
    if name not in infos:
        raise invalid(f"JSON object: does not have named input: {name}")
    array = _array(name, value, infos[name], limits)
    first = columns[name][0] if columns[name] else array
    if first.size != array.size:
        raise invalid(f"Expecting tensor size: {first.size} but got: {array.size}")
    if first.shape != array.shape:
        raise invalid(f"Expecting shape {_shape(first.shape)} but got: {_shape(array.shape)}")
    columns[name].append(array)


def _read_columns(value: Any, infos: Mapping[str, Any], limits: Limits) -> Arrays:
    if not _is_object(value):
        if len(infos) > 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map"
            )
        value = {next(iter(infos)): value}
    for name in infos:
        if name not in value:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
    return {name: _array(name, value[name], info, limits) for name, info in infos.items()}


def _array(name: str, value: Any, info: Any, limits: Limits) -> np.ndarray:
    """Converts a JSON value or nested lists of values to an array of an input's type."""
    shape: list[int] = []
    inner = value
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
        if len(shape) > _DEEPEST:
            raise invalid(f"Lists are nested deeper than {_DEEPEST} levels")
    limits.check_shape(name, tuple(shape))
    dtype = tf.as_dtype(info.dtype)
    values: list[Any] = []
    _add(value, 0, shape, dtype, values)
    array = np.empty(len(values), object if dtype == tf.string else dtype.as_numpy_dtype)
    array[:] = values
    return array.reshape(shape)


def _add(value: Any, level: int, shape: list[int], dtype: tf.DType, values: list[Any]) -> None:
    if not isinstance(value, list):
        if level != len(shape):
            raise invalid(
                f"JSON Value: {shown(value)} found at incorrect level: {level + 1} in the JSON "
                f"DOM. Expected at level: {len(shape)}"
            )
        values.append(_value(value, dtype))
        return
    if level >= len(shape):
        raise invalid(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise invalid(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: "
            f"{shape[level]}"
        )
    for one in value:
        _add(one, level + 1, shape, dtype, values)


def _value(value: Any, dtype: tf.DType) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype == tf.string:
        if isinstance(value, dict):
            return decode_base64(value)
        fits = isinstance(value, str)
    elif dtype in _FLOATS:
        fits = is_number
        if is_number and not _is_lossless(value, dtype):
            raise invalid(
                f"Cannot convert JSON value: {shown(value)} to {_FLOATS[dtype][1]} without loss "
                "of precision."
            )
    elif dtype.is_integer:
        fits = is_number and isinstance(value, int) and dtype.min <= value <= dtype.max
    elif dtype == tf.bool:
        fits = isinstance(value, bool)
    else:
        raise ServingError(
            "UNIMPLEMENTED",
            f"Conversion of JSON Value: {shown(value)} to type: {type_name(dtype)}",
        )
    if not fits:
        raise invalid(
            f"JSON Value: {shown(value)} Type: {json_type(value)} is not of expected type: "
            f"{type_name(dtype)}"
        )
    return encode(value) if dtype == tf.string else value


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not is_base64(value)


def _is_lossless(value: float, dtype: tf.DType) -> bool:
    if isinstance(value, int):
        return abs(value) < 1 << _FLOATS[dtype][0]
    return not math.isfinite(value) or float(dtype.min) <= value <= float(dtype.max)


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
