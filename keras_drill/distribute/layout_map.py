"""Output layers whose vocabulary is split over devices, under `keras.distribution` (JAX)."""

import keras

# What Keras calls these layers unless they are given a name, but for a number at the end.
HEADS = r"output_layer|\w+_output|kernelized_bayesian_softmax|mixture_of_softmaxes|head|\w+_head"
EMBEDDINGS = r"(?!\w*position)\w*embedding"


def layout_map(
    device_mesh: keras.distribution.DeviceMesh,
    model_axis: str = "model",
    heads: str = HEADS,
    embeddings: str | None = EMBEDDINGS,
) -> keras.distribution.LayoutMap:
    """Splits the vocabulary of output layers, and of embeddings, over an axis of a mesh.

    Rows of labels, biases and kernel parameters, and their optimizer slots, are split; all other
    variables are on every device. A training step then sends per token the largest score, the sum
    of the exponentials and the target's scores, and per step the gradient of the hidden states,
    over this axis; over the other the gradients of all weights, each device those of its rows.
    Needs Keras' JAX backend, and jax 0.6.1 or later.

    The number of rows must be a multiple of the axis' devices: see `pad_labels_to` of
    `keras_drill.OutputLayer`.

    Args:
        device_mesh: The `keras.distribution.DeviceMesh`.
        model_axis: Its axis that vocabularies are split over. This axis must not be the batch's.
        heads: Regular expression of the names of output layers; a number at the end is understood.
        embeddings: The same of embeddings; `None` leaves them to another map, such as a backbone's
            of keras-hub, that this one is added to: `backbone_map.update(layout_map(mesh,
            embeddings=None))`.

    Returns:
        A `keras.distribution.LayoutMap` to be given to `keras.distribution.ModelParallel`, and to
        be added to.

    Raises:
        ValueError: The mesh has no such axis.

    Example:

    >>> mesh = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), devices=["cpu:0"])
    >>> splits = keras_drill.distribute.layout_map(mesh)
    >>> splits["language_model/drill_output/bias"].axes, splits["lstm/lstm_cell/bias"]
    (('model',), None)
    """
    if model_axis not in device_mesh.axis_names:
        raise ValueError(
            f"`model_axis` must be an axis of the mesh, one of {tuple(device_mesh.axis_names)}. "
            f"Received: model_axis={model_axis!r}"
        )
    layouts = keras.distribution.LayoutMap(device_mesh)
    names = heads if embeddings is None else f"{heads}|{embeddings}"
    layouts[_path(heads, "label_embeddings")] = (model_axis, None)
    layouts[_path(heads, "bias")] = (model_axis,)
    layouts[_path(names, "theta")] = (model_axis,)
    if embeddings is not None:
        layouts[_path(embeddings, "embeddings")] = (model_axis, None)
        layouts[_path(embeddings, "reverse_embeddings")] = (None, model_axis)
    return layouts


def _path(layers: str, variable: str) -> str:
    return rf"^(.*/)?({layers})(_\d+)?/{variable}$"
