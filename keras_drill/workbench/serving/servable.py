"""One version of a model, loaded: what TensorFlow Serving calls a servable."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_drill.workbench.serving.errors import ServingError, error_of_tensorflow, invalid

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
_MOST_WARM_UP_REQUESTS = 1000  # as TensorFlow Serving
# As TensorFlow's C++ code, and so TensorFlow Serving, calls them.
_TYPE_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


class Servable:
    """A SavedModel that runs its signatures with TensorFlow alone.

    Args:
        name: The model's name.
        version: Its number.
        folder: Where it is: `<base>/<name>/<version>`.

    Attributes:
        signature_defs: `SignatureDef`s by name, as the file has them.
    """

    def __init__(self, name: str, version: int, folder: str | os.PathLike):
        self.name = name
        self.version = version
        self.folder = Path(folder)
        self.signature_defs = read_signature_defs(self.folder)
        self._loaded: Any = tf.saved_model.load(str(folder))

    def signature_def(self, name: str) -> Any:
        """The `SignatureDef` of this name; "" is the default one. `None` where there is none."""
        return self.signature_defs.get(name or "serving_default")

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Answers a batch.

        Args:
            signature: A name.
            inputs: Arrays by name, strings as objects, already checked by `check_inputs`.

        Raises:
            ServingError: The model has no such signature that can be run, or an operation failed.
        """
        function = self._loaded.signatures.get(signature)
        if function is None:
            raise ServingError(
                "FAILED_PRECONDITION", f'Serving signature key "{signature}" not found.'
            )
        types = {name: info.dtype for name, info in self.signature_defs[signature].inputs.items()}
        try:
            tensors = {
                name: tf.constant(value, tf.as_dtype(types[name])) for name, value in inputs.items()
            }
            return {name: value.numpy() for name, value in function(**tensors).items()}
        except tf.errors.OpError as error:
            raise error_of_tensorflow(error) from error

    def warm_up(self) -> int:
        """Answers the requests that came with the model; returns how many.

        Raises:
            ServingError: One of them failed.
        """
        path = self.folder / WARM_UP_FILE
        if not path.is_file():
            return 0
        from tensorflow_serving.apis import prediction_log_pb2

        records = tf.data.TFRecordDataset(str(path)).take(_MOST_WARM_UP_REQUESTS)
        count = 0
        for record in records.as_numpy_iterator():
            request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
            signature = request.model_spec.signature_name or "serving_default"
            inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            self.run(signature, inputs)
            count += 1
        return count


def read_signature_defs(folder: Path) -> dict[str, Any]:
    """The `SignatureDef`s of a SavedModel for serving, by name, without loading it."""
    from tensorflow.core.protobuf import saved_model_pb2

    path = folder / "saved_model.pb"
    if not path.is_file():
        raise ServingError("NOT_FOUND", f"There is no saved_model.pb in {folder}")
    saved_model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for meta_graph in saved_model.meta_graphs:
        if "serve" in meta_graph.meta_info_def.tags:
            return dict(sorted(meta_graph.signature_def.items()))
    raise ServingError("NOT_FOUND", f"No graph of {path} has the tag 'serve'")


def check_inputs(signature_def: Any, inputs: Mapping[str, np.ndarray]) -> None:
    """Refuses arrays whose types and shapes are not those of a `SignatureDef`'s inputs."""
    for index, (name, info) in enumerate(sorted(signature_def.inputs.items())):
        array = inputs[name]
        expected = tf.as_dtype(info.dtype)
        given = tf.string if array.dtype == object else tf.as_dtype(array.dtype)
        if given != expected:
            raise invalid(
                f"Expects arg[{index}] to be {type_name(expected)} but {type_name(given)} is "
                "provided"
            )
        shape = tf.TensorShape(info.tensor_shape)
        if not shape.is_compatible_with(array.shape):
            raise invalid(
                f"Input {name} has the shape {list(array.shape)}, which does not fit "
                f"{_shown(shape)}"
            )


def type_name(dtype: tf.DType) -> str:
    """A type as error messages of TensorFlow Serving call it.

    >>> type_name(tf.float32), type_name(tf.string)
    ('float', 'string')
    """
    return _TYPE_NAMES.get(dtype.name, dtype.name)


def _shown(shape: tf.TensorShape) -> list[int]:
    return [-1 if size is None else size for size in shape.as_list()]
