"""Warm-up requests, which TensorFlow Serving replays when it loads a model."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_drill.data.serialize_examples import serialize_examples


def write_warmup_requests(path: str | os.PathLike, requests: list[tuple[str, dict]]) -> None:
    """Writes `assets.extra/tf_serving_warmup_requests`: a TFRecord of `PredictionLog`.

    The function encodes the messages of `tensorflow_serving.apis` itself, so it does not require
    that package, which pins the version of TensorFlow. The fields are:

        PredictionLog.predict_log = 6     PredictLog.request = 1
        PredictRequest.model_spec = 1     PredictRequest.inputs = 2 (map<string, TensorProto>)
        ModelSpec.signature_name = 3

    Args:
        path: The file to write.
        requests: Pairs of the name of a signature and its inputs, a dictionary from names to
            arrays.

    References:
        - https://www.tensorflow.org/tfx/serving/saved_model_warmup
    """
    with tf.io.TFRecordWriter(os.fspath(path)) as writer:
        for signature_name, inputs in requests:
            request = _field(1, _field(3, signature_name.encode()))
            for name, value in inputs.items():
                tensor = tf.make_tensor_proto(value).SerializeToString(deterministic=True)
                request += _field(2, _field(1, name.encode()) + _field(2, tensor))
            writer.write(_field(6, _field(1, request)))


def example_inputs(names: Iterable[str], texts: Sequence[str | bytes]) -> dict[str, Any]:
    """Creates example inputs for a signature of an exported model.

    Args:
        names: Names of the signature's inputs.
        texts: Example texts. Every input gets one value for each text.

    Returns:
        A dictionary from the names of inputs to their values.

    Example:

    >>> sorted(example_inputs(["prompts", "seed"], ["the cat", ""]).items())
    [('prompts', ['the cat', '']), ('seed', array([0, 0]))]
    """
    count = len(texts)
    features = ("text", "prompt", "source", "target")  # models ignore other features
    columns = {name: [tf.compat.as_bytes(text) for text in texts] for name in features}
    inputs = {
        "prompts": list(texts),
        "texts": list(texts),
        "prefixes": ["" for _ in texts],
        "examples": serialize_examples(columns),
        "max_new_tokens": np.full(count, np.iinfo("int32").max, "int32"),  # the maximum
        "temperature": np.ones(count, "float32"),
        "top_k": np.zeros(count, "int32"),
        "top_p": np.ones(count, "float32"),
        "min_p": np.zeros(count, "float32"),
        "seed": np.zeros(count, "int64"),
        "senses": np.zeros(count, "int32"),
    }
    return {name: inputs[name] for name in names}


def _field(number: int, payload: bytes) -> bytes:
    """Encodes a length-delimited field in the wire format of protocol buffers."""
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])
