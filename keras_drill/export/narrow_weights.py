"""Stores the weights of exported models in 16 or 8 bits."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

WEIGHTS = ("float32", "bfloat16", "float16", "int8")
_MOST = 127  # int8 without -128: a symmetric range


class NarrowWeights(tf.Module):
    """Stores weights in 16 or 8 bits, and converts them back to float32 when a function uses them.

    `export_saved_model` and `export_translator` use this class for their argument `weights`. Files
    and the memory for weights become smaller. Computations keep the precision of the model, so each
    call makes a temporary float32 copy of the weights that it uses. Only matrices (floats with at
    least two axes) are stored in fewer bits. Vectors, which are small, and integers stay unchanged.
    `"int8"` uses a scale for each row or for each column of a matrix, whichever has the smaller
    error.

    Args:
        variables: Keras variables of a model, whose values are copied.
        kind: Type of the stored weights: `"bfloat16"`, `"float16"` or `"int8"`.

    Raises:
        ValueError: A weight is too large for float16, or not finite.

    Example:

    >>> import keras
    >>> import tensorflow as tf
    >>> from keras_drill.export import NarrowWeights
    >>> embedding = keras.layers.Embedding(3, 2)
    >>> embedding.build()
    >>> _ = embedding.embeddings.assign([[127.0, -1.0], [0.5, 0.25], [0.0, 0.0]])
    >>> narrow = NarrowWeights(embedding.variables, "int8")
    >>> function = tf.function(
    ...     lambda ids: embedding(ids), input_signature=[tf.TensorSpec([None], tf.int32, "ids")]
    ... )
    >>> narrow.narrowed({"embed": function})["embed"](ids=[0, 2]).numpy().tolist()
    [[127.0, -1.0], [0.0, 0.0]]
    """

    def __init__(self, variables: Iterable[Any], kind: str):
        super().__init__(name="narrow_weights")
        if kind not in WEIGHTS[1:]:
            raise ValueError(f"`kind` must be one of {WEIGHTS[1:]}. Received: kind={kind!r}")
        self.kind = kind
        own = {id(variable): variable for variable in variables}  # tied weights occur twice
        self._wide = [variable for variable in own.values() if _is_matrix(variable)]
        self._narrow = [self._narrowed(variable) for variable in self._wide]

    def narrowed(self, functions: Mapping[str, Any]) -> dict[str, Any]:
        """Converts `tf.function`s that use the variables to functions that read the stored weights.

        Args:
            functions: Mapping from names to `tf.function`s. Each function must have an
                `input_signature` in which every `tf.TensorSpec` has a name.

        Returns:
            Dictionary from the same names to the converted `tf.function`s.
        """
        return {name: self._reading(function) for name, function in functions.items()}

    def _reading(self, function):
        def answer(*inputs):
            widened = [self._widened(*parts) for parts in self._narrow]
            mapping = list(zip(self._wide, widened, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return python_function(*inputs)

        # Trace the Python function again, since existing traces read the original weights.
        python_function = function.python_function
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        named = [inspect.Parameter(spec.name, kind) for spec in function.input_signature]
        answer.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return tf.function(answer, input_signature=function.input_signature, autograph=False)

    def _narrowed(self, variable):
        value = keras.ops.convert_to_numpy(keras.ops.cast(variable, "float32"))
        most = float(tf.float16.max) if self.kind == "float16" else float(tf.float32.max)
        if not (np.abs(value) <= most).all():
            raise ValueError(
                f"`variables` must have finite values, of at most {most:g} for {self.kind}. "
                f"Received: {variable.path} with values up to {np.abs(value).max()}"
            )
        parts = _quantize(value) if self.kind == "int8" else (tf.cast(value, self.kind),)
        return tuple(tf.Variable(part, trainable=False) for part in parts)

    def _widened(self, narrow, scale=None):
        value = tf.cast(narrow, tf.float32)
        return value if scale is None else value * scale


def served_signatures(module: Any, weights: str) -> dict[str, Any]:
    """Returns the signatures of a `TextModel` or `Translator`, with weights of the given type.

    Args:
        module: The `TextModel` or `Translator`.
        weights: One of `WEIGHTS`; `"float32"` leaves the weights unchanged.
    """
    if weights == WEIGHTS[0]:
        return module.signatures()
    return NarrowWeights(module.weights, weights).narrowed(module.signatures())


def num_bytes(function: Any) -> int:
    """Returns the size in bytes of the variables that a `tf.function` reads.

    The function must have an input signature.

    Example:

    >>> variable = tf.Variable(tf.zeros((3, 5), tf.float16))
    >>> num_bytes(tf.function(lambda: variable * 2, input_signature=[]))
    30
    """
    variables = function.get_concrete_function().graph.variables
    return sum(int(np.prod(each.shape)) * each.dtype.size for each in variables)


def _is_matrix(variable) -> bool:
    return keras.backend.is_float_dtype(variable.dtype) and len(variable.shape) >= 2


def _quantize(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantizes to int8, with float32 scales for rows or columns, whichever is more exact."""
    found = []
    for axis in (0, value.ndim - 1):
        others = tuple(each for each in range(value.ndim) if each != axis)
        largest = np.abs(value).max(axis=others, keepdims=True)
        scale = np.where(largest > 0, largest / _MOST, 1.0).astype("float32")
        whole = np.clip(np.round(value / scale), -_MOST, _MOST)
        found.append((np.square(whole * scale - value).sum(), whole.astype("int8"), scale))
    _, whole, scale = min(found, key=lambda one: one[0])
    return whole, scale
