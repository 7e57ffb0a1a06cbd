"""Finds out the inputs and outputs of backbones before the first batch, and checks them."""

from typing import Any

import keras

from keras_drill.ops.private_interfaces import is_symbolic
from keras_drill.ops.token_weights import rank_is_unknown
from keras_drill.types import Shape, Tensor

PAIRS_SHAPE: dict[str, Shape] = {"source": (None, None), "target": (None, None)}


def symbolic_ends(backbone: keras.Layer) -> tuple | None:
    """Returns the symbolic inputs and outputs of a functional backbone or a built `Sequential`.

    Returns `None` for other backbones.
    """
    if isinstance(backbone, keras.Sequential):
        return (backbone.inputs[0], backbone.outputs[0]) if backbone.built else None
    return (backbone.input, backbone.output) if hasattr(backbone, "inputs") else None


def shape_built_for(backbone: keras.Layer) -> Any:
    """Returns the shape (or structure) of inputs for which a backbone is built, or `None`."""
    if not backbone.built:
        return None
    ends = symbolic_ends(backbone)
    if ends is not None:
        return keras.tree.map_structure(lambda x: tuple(x.shape), ends[0])
    shape = (backbone.get_build_config() or {}).get("input_shape")
    if isinstance(shape, dict):
        shape = dict(shape)  # JAX does not support Keras' dictionary type
    shapes = list(shape.values()) if isinstance(shape, dict) else [shape]
    return shape if all(_is_shape(s) for s in shapes) else None


def _is_shape(shape) -> bool:
    return isinstance(shape, tuple) and all(isinstance(s, int | None) for s in shape)


def dtype_of(shape: Shape) -> str:
    """Guesses the dtype of an input from its shape: inputs with up to two axes are tokens."""
    return "int32" if len(shape) <= 2 else keras.config.floatx()


def check_hidden(hidden: Any) -> Tensor:
    """Returns the hidden states. Raises `ValueError` if a backbone returns several tensors."""
    if keras.tree.is_nested(hidden):
        received = list(hidden) if isinstance(hidden, dict) else f"{len(hidden)} tensors"
        raise ValueError(
            "`backbone` must give one tensor, the hidden states (batch, time, width). To choose "
            "one of several tensors, use `keras.Model(backbone.input, backbone.output[...])`. "
            f"Received: {received}"
        )
    return hidden


def check_source_and_target(inputs: Any) -> None:
    """Raises `ValueError` unless inputs are a source and a target that a backbone can read."""
    names = sorted(inputs) if isinstance(inputs, dict) else None
    if names is None or not {"source", "target"} <= set(names):
        raise ValueError(
            'The inputs must be a dictionary {"source": [B, S], "target": [B, T]} of word ids. '
            f"Received: {type(inputs).__name__ if names is None else names}"
        )
    for name in ("source", "target"):
        rows = inputs[name]
        if hasattr(rows, "row_splits"):
            raise ValueError(
                f"`{name}` must not be ragged: pad the rows, `{name}.to_tensor(pad_id)`. "
                f"Received: {type(rows).__name__} of shape {tuple(rows.shape)}"
            )
        if rank_is_unknown(rows) or is_symbolic():
            continue
        dtype, rank = keras.backend.standardize_dtype(rows.dtype), len(rows.shape)
        are_words = rank == 2 and "int" in dtype
        if not are_words and (name == "target" or rank <= 2):
            raise ValueError(
                f"`{name}` must be integers, one row of word ids for each sequence. "
                f"Received: dtype {dtype}, shape {tuple(rows.shape)}"
            )
