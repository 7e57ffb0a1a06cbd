"""A servable: one loaded version of a model, in TensorFlow Serving's terms."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_drill.workbench.serving.errors import ServingError, error_of_tensorflow, invalid

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
_MOST_WARM_UP_REQUESTS = 1000  # the limit of TensorFlow Serving
# Names of types in TensorFlow's C++ code, and so in messages of TensorFlow Serving.
_TYPE_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


class Servable:
    """A loaded SavedModel that runs its signatures with TensorFlow only.

    Args:
        name: Name of the model.
        version: Number of the version.
        folder: Folder of the version, `<base>/<name>/<version>`.

    Attributes:
        signature_defs: `SignatureDef`s of the file by name.
    """

    def __init__(self, name: str, version: int, folder: str | os.PathLike):
        self.name = name
        self.version = version
        self.folder = Path(folder)
        self.signature_defs = read_signature_defs(self.folder)
        self._loaded: Any = tf.saved_model.load(str(folder))

    def signature_def(self, name: str) -> Any:
        """Returns a `SignatureDef` or `None`. The name "" stands for the default signature."""
        return self.signature_defs.get(name or "serving_default")

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a signature on a batch, and returns its outputs by name.

        Args:
            signature: Name of the signature.
            inputs: Arrays by name, with strings as objects, already checked by `check_inputs`.

        Raises:
            ServingError: The model has no such signature, or an operation failed.
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
        """Runs the warm-up requests in the model's folder, and returns their number.

        Raises:
            ServingError: A request failed.
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
    """Reads the `SignatureDef`s of a SavedModel by name, without loading the model."""
    from tensorflow.core.protobuf import saved_model_pb2

    path = folder / "saved_model.pb"
    if not path.is_file():
        raise ServingError(
            "NOT_FOUND", f"There is no saved_model.pb in {folder}: export the model again"
        )
    saved_model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for meta_graph in saved_model.meta_graphs:
        if "serve" in meta_graph.meta_info_def.tags:
            return dict(sorted(meta_graph.signature_def.items()))
    raise ServingError(
        "NOT_FOUND", f"No graph of {path} has the tag 'serve': export the model again"
    )


def check_inputs(signature_def: Any, inputs: Mapping[str, np.ndarray]) -> None:
    """Raises `ServingError` if types or shapes of arrays do not match a `SignatureDef`."""
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
    """Returns the name of a type in TensorFlow Serving's error messages.

    >>> type_name(tf.float32), type_name(tf.string)
    ('float', 'string')
    """
    return _TYPE_NAMES.get(dtype.name, dtype.name)


def _shown(shape: tf.TensorShape) -> list[int]:
    return [-1 if size is None else size for size in shape.as_list()]
