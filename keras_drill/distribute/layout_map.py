"""Output layers whose vocabulary is split over devices, under `keras.distribution` (JAX)."""

import keras

# Keras' default names of these layers, without the number at the end.
HEADS = r"output_layer|\w+_output|kernelized_bayesian_softmax|mixture_of_softmaxes|head|\w+_head"
EMBEDDINGS = r"(?!\w*position)\w*embedding"


def layout_map(
    device_mesh: keras.distribution.DeviceMesh,
    model_axis: str = "model",
    heads: str = HEADS,
    embeddings: str | None = EMBEDDINGS,
) -> keras.distribution.LayoutMap:
    """Returns a layout map that splits the vocabulary of output layers and embeddings over devices.

    The rows of labels (output embeddings, one row for each word), input embeddings, biases of the
    output layer and parameters of `keras_drill.scores.KerBSKernel`, and their optimizer slots, are
    split over the axis `model_axis` of a device mesh. All other variables are on every device.
    Training with the map requires Keras' JAX backend, and jax 0.6.1 or later.

    In a training step, the devices along `model_axis` exchange three numbers per token: the largest
    logit, the sum of exponentials, and the target's logit. They also exchange the gradient with
    respect to the hidden states. The devices along the other axis, over which the batch is split,
    exchange the gradients of the weights that they have in common.

    The number of rows of each split variable must be a multiple of the number of devices along
    `model_axis`. The argument `pad_labels_to` of `keras_drill.OutputLayer` adds unused rows to an
    output layer. Create input embeddings with an `input_dim` that is such a multiple.

    Args:
        device_mesh: The `keras.distribution.DeviceMesh`.
        model_axis: Name of the mesh axis over which to split vocabularies. It must not be the axis
            over which batches are split.
        heads: Regular expression for the names of output layers. Names to which Keras appends a
            number, such as `drill_output_1`, match too. The default matches the default names of
            this package's output layers, `head`, and names that end in `_output` or `_head`.
        embeddings: Regular expression for the names of embeddings. The default matches names that
            end in `embedding`, except those that contain `position`. Use `None` if another map
            contains the embeddings, for example the map of a keras-hub backbone, and combine both
            by `backbone_map.update(layout_map(mesh, embeddings=None))`.

    Returns:
        A `keras.distribution.LayoutMap` for `keras.distribution.ModelParallel`. You can add
        entries.

    Raises:
        ValueError: The mesh has no axis `model_axis`.

    Example:

    >>> mesh = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), devices=["cpu:0"])
    >>> splits = keras_drill.distribute.layout_map(mesh)
    >>> splits["language_model/drill_output/bias"].axes, splits["lstm/lstm_cell/bias"]
    (('model',), None)
    """
    if model_axis not in device_mesh.axis_names:
        raise ValueError(
            "`model_axis` must be an axis of `device_mesh`, one of "
            f"{tuple(device_mesh.axis_names)}. Received: model_axis={model_axis!r}"
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
