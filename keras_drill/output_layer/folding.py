"""Folds output layers for inference: the result of the label encoder becomes a constant."""

import keras

from keras_drill.label_encoders import FoldedLabelEncoder


def fold(head):
    """Implements `OutputLayer.folded`."""
    labels = head._labels(training=False)
    network = head.label_encoder.hidden_network
    folded = head._make_folded(
        label_encoder=FoldedLabelEncoder(_unbuilt_copy(network), dtype=head.dtype_policy),
        embedding_dim=labels.shape[-1],
        use_bias=head.use_bias,
        logit_soft_cap=head.logit_soft_cap,
        z_loss=head.z_loss,
        tile_size=head.tile_size,
        tile_bytes=head.tile_bytes,
        pad_labels_to=head.pad_labels_to,
        name=head.name,
        trainable=False,
        dtype=head.dtype_policy,
    )
    folded.build(head.hidden_shape)
    folded.label_embeddings.assign(labels)
    if head.use_bias:
        folded.bias.assign(head.bias)
    _assign(folded.score_parameters, head.score_parameters)
    if network is not None:
        _assign(folded.label_encoder.hidden_network.variables, network.variables)
    # Match by name, because the copy for inference has no variables for statistics.
    values = {variable.name: variable for variable in head.composition.variables}
    for variable in folded.composition.variables:
        variable.assign(values[variable.name])
    return folded


def _unbuilt_copy(layer: keras.Layer | None) -> keras.Layer | None:
    return layer and type(layer).from_config(layer.get_config())


def _assign(variables, values):
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
