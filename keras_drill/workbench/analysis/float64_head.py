"""Copy of an output layer that computes in float64."""

from typing import Any

import keras

from keras_drill.output_layer import OutputLayer


def float64_head(head: OutputLayer) -> OutputLayer:
    """Copies a built output layer with its weights to a layer that computes in float64.

    Rounding errors of float32 are noise of full rank, which hides the rank of a matrix of
    log-probabilities. The copy shares no variables with the original. If the original shares a
    quantized embedding, the copy has a float64 embedding with the dequantized values.

    Args:
        head: A built `keras_drill.OutputLayer`.

    Example:

    >>> head = keras_drill.OutputLayer(11)
    >>> head(keras.ops.ones((2, 3))).dtype.name
    'float32'
    >>> float64_head(head)(keras.ops.ones((2, 3), "float64")).dtype.name
    'float64'
    """
    config = _with_dtype(head.get_config(), "float64")
    if _is_quantized(head):  # an embedding from the config would have other variables
        config["embedding"] = keras.layers.Embedding(*head.embeddings.shape, dtype="float64")
    copy = type(head).from_config(config)
    copy.build(head.hidden_shape)
    # A shared embedding's place among the head's variables depends on when it was built.
    for part, original in zip(_variables(copy), _variables(head), strict=True):
        for variable, value in zip(part, original, strict=True):
            variable.assign(value)
    return copy


def _is_quantized(head: OutputLayer) -> bool:
    return head.embedding is not None and head.embedding.quantization_mode is not None


def _variables(head: OutputLayer) -> tuple[list, list]:
    """Returns the variables of the shared embedding of a head, and the other variables.

    A quantized embedding is replaced by its dequantized table.
    """
    shared = [] if head.embedding is None else head.embedding.variables
    ids = {id(variable) for variable in shared}
    others = [variable for variable in head.variables if id(variable) not in ids]
    return [head.embeddings] if _is_quantized(head) else shared, others


def _with_dtype(config: Any, dtype: str) -> Any:
    """Returns a config in which all dtype policies are replaced."""
    if isinstance(config, dict):
        return {
            key: dtype if key == "dtype" and value is not None else _with_dtype(value, dtype)
            for key, value in config.items()
        }
    if isinstance(config, list | tuple):
        return type(config)(_with_dtype(value, dtype) for value in config)
    return config
