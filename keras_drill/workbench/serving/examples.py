"""The older methods `:classify` and `:regress`, whose inputs are `tf.Example`s.

These methods need signatures with TensorFlow Serving's method names for them. Signatures that
`tf.saved_model.save` writes are for `:predict`, and are refused here as in TensorFlow Serving.
"""

from collections.abc import Mapping, Sequence
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
from keras_drill.workbench.serving.predictions import DEFAULT_SIGNATURE, Predictor
from keras_drill.workbench.serving.servable import Servable

_METHOD = {"classification": "classify", "regression": "regress"}
_INT64 = range(-(2**63), 2**63)


def read_examples(document: Mapping[str, Any], verb: str, limits: Limits) -> list[bytes]:
    """Reads the `tf.Example`s of a request, adds the features of `context`, and serializes them.

    Example:

    >>> (example,) = read_examples({"examples": [{"x": [1, 2]}]}, "classify", Limits())
    >>> tf.train.Example.FromString(example).features.feature["x"].int64_list.value
    [1, 2]
    """
    context = _example(document["context"]) if "context" in document else tf.train.Example()
    if "examples" not in document:
        raise invalid(
            f"JSON Value: {shown(document)} When method is classify, key 'examples' is expected "
            "and was not found"
        )
    examples = document["examples"]
    if not isinstance(examples, list):
        raise invalid(
            f"JSON Value: {shown(document)} Expecting 'examples' value to be an list/array"
        )
    if not examples:
        raise invalid(f"JSON Value: {shown(document)} 'examples' value is an empty array")
    if len(examples) > limits.rows:
        raise invalid(f"There are {len(examples)} examples; at most {limits.rows} are allowed")
    serialized = []
    for one in examples:
        example = tf.train.Example()
        example.CopyFrom(context)
        example.MergeFrom(_example(one))
        serialized.append(example.SerializeToString(deterministic=True))
    return serialized


def _example(value: Any) -> tf.train.Example:
    if not isinstance(value, dict):
        raise invalid(f"Example must be JSON object but got JSON {json_type(value)}")
    features = {}
    for name, content in value.items():
        feature = tf.train.Feature()
        for one in content if isinstance(content, list) else [content]:
            _add(one, name, feature)
        features[name] = feature
    return tf.train.Example(features=tf.train.Features(feature=features))


def _add(value: Any, name: str, feature: tf.train.Feature) -> None:
    if isinstance(value, str) or is_base64(value):
        kind = "bytes_list"
        value = encode(value) if isinstance(value, str) else decode_base64(value)
    elif isinstance(value, bool | int):
        kind = "int64_list"
        if value not in _INT64:
            raise invalid(f"Feature: {name} has uint64 element. Only int64 is supported.")
    elif isinstance(value, float):
        kind = "float_list"
    else:
        raise invalid(f"Feature: {name} has element with unexpected JSON type: {json_type(value)}")
    is_now = feature.WhichOneof("kind")
    if is_now not in (None, kind):
        raise invalid(
            f"Unexpected element type in feature: {name} expecting type: "
            f"{is_now.removesuffix('_list')}"
        )
    getattr(feature, kind).value.append(value)


async def classify(
    predictor: Predictor, servable: Servable, signature: str, examples: Sequence[bytes]
) -> list[list[tuple[str, float]]]:
    """Runs a classification signature, and returns pairs of class and score for every example."""
    name = _checked(servable, signature, "classification")
    outputs = servable.signature_defs[name].outputs
    if not {"classes", "scores"} & set(outputs):
        raise ServingError(
            "FAILED_PRECONDITION",
            'Expected classification signature outputs to contain at least one of "classes" or '
            '"scores".',
        )
    answer = await predictor.predict(servable, name, {"inputs": _strings(examples)})
    for key in {"classes", "scores"} & set(answer):
        if answer[key].ndim != 2 or len(answer[key]) != len(examples):
            raise invalid(
                f"Expected Tensor shape: [batch_size num_classes] but got {list(answer[key].shape)}"
            )
    shape = answer["classes" if "classes" in answer else "scores"].shape
    classes = answer.get("classes", np.full(shape, b"", object))
    scores = answer.get("scores", np.zeros(shape, np.float32))
    return [
        [(label.decode("utf-8", "replace"), float(str(score))) for label, score in pairs]
        for pairs in (zip(*row, strict=True) for row in zip(classes, scores, strict=True))
    ]


async def regress(
    predictor: Predictor, servable: Servable, signature: str, examples: Sequence[bytes]
) -> list[float]:
    """Runs a regression signature, and returns the value of every example."""
    name = _checked(servable, signature, "regression")
    if "outputs" not in servable.signature_defs[name].outputs:
        raise ServingError(
            "FAILED_PRECONDITION", 'Expected regression signature outputs to contain "outputs".'
        )
    answer = await predictor.predict(servable, name, {"inputs": _strings(examples)})
    values = answer["outputs"]
    if values.shape not in ((len(examples),), (len(examples), 1)):
        raise invalid(
            "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got "
            f"{list(values.shape)}"
        )
    return [float(str(value)) for value in values.ravel()]


def _checked(servable: Servable, signature: str, kind: str) -> str:
    name = signature or DEFAULT_SIGNATURE
    if name not in servable.signature_defs:
        raise invalid(f"No signature was found with the name: {name}")
    method = f"tensorflow/serving/{_METHOD[kind]}"
    signature_def = servable.signature_defs[name]
    if signature_def.method_name != method:
        raise invalid(
            f"Expected {kind} signature method_name to be {method}. Was: "
            f"{signature_def.method_name}"
        )
    if len(signature_def.inputs) != 1:
        raise invalid("Expected one input Tensor.")
    if "inputs" not in signature_def.inputs:
        raise ServingError("FAILED_PRECONDITION", f"No {kind} inputs found in SignatureDef")
    return name


def _strings(values: Sequence[bytes]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = list(values)
    return array
