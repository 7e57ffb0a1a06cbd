"""Conversion of outputs to JSON, as in TensorFlow Serving's REST interface."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_drill.workbench.serving.errors import invalid
from keras_drill.workbench.serving.servable import type_name


def write_outputs(outputs: Mapping[str, np.ndarray], in_rows: bool) -> dict[str, Any]:
    """Returns the response to a `:predict` request, for `json.dumps`.

    A single output has no name; several outputs are an object with their names. Strings of outputs
    whose name ends in `_bytes` are encoded as base64. In other strings, bytes that are not UTF-8
    are replaced.

    Example:

    >>> write_outputs({"y": np.float32([0.1, 2])}, in_rows=True)
    {'predictions': [0.1, 2.0]}
    """
    if not outputs:
        raise invalid("Cannot convert empty tensor map to JSON")
    lists = {name: _list(value, name.endswith("_bytes")) for name, value in outputs.items()}
    if not in_rows:
        return {"outputs": lists if len(lists) > 1 else next(iter(lists.values()))}
    size = None
    for name, value in outputs.items():
        if not value.ndim:
            raise invalid(f"Tensor name: {name} has no shape information ")
        if size is not None and size != len(value):
            raise invalid(
                f"Tensor name: {name} has inconsistent batch size: {len(value)} expecting: {size}"
            )
        size = len(value)
    if len(lists) == 1:
        return {"predictions": next(iter(lists.values()))}
    return {
        "predictions": [
            dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)
        ]
    }


def _list(array: np.ndarray, as_base64: bool) -> Any:
    if array.dtype == object:
        shown = _base64 if as_base64 else _text
        flat = np.empty(array.size, object)
        flat[:] = [shown(value) for value in array.ravel()]
        return flat.reshape(array.shape).tolist()
    if tf.as_dtype(array.dtype).is_floating and array.dtype != np.float64:
        # Writes the shortest digits that identify a float32, not the digits of its double.
        return array.astype(np.float32).astype("U").astype(np.float64).tolist()
    if array.dtype.kind not in "biuf":
        raise invalid(
            f"Failed to write JSON value for tensor type: {type_name(tf.as_dtype(array.dtype))}"
        )
    return array.tolist()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _base64(value: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(value).decode()}
