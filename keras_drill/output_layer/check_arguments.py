"""Checks the constructor arguments of output layers."""

from typing import Any

import keras

from keras_drill.compositions import MultiSense
from keras_drill.fused_loss.placement import check_rows
from keras_drill.senses import SenseEmbedding

ADVICE = (
    "give the output layer `pad_labels_to={rows}` and an embedding that it shares "
    "`input_dim={rows}`, or, if words have several senses, `num_senses={rows}`"
)


def part(name: str, value: Any, kind: type, example: str) -> Any:
    """Returns a part of an output layer, deserialized if necessary; `None` stays `None`.

    Raises:
        ValueError: `value` has another type.
    """
    if isinstance(value, dict):
        value = keras.saving.deserialize_keras_object(value)
    if value is not None and not isinstance(value, kind):
        raise ValueError(
            f"`{name}` must be a {kind.__name__}, such as `keras_drill.{example}`, or None. "
            f"Received: {name}={value!r}"
        )
    return value


def check_arguments(head):
    """Raises `ValueError` for arguments of `OutputLayer` that are out of range."""
    for name in ("vocabulary_size", "embedding_dim", "tile_size", "tile_bytes", "pad_labels_to"):
        value = getattr(head, name)
        if value is None and name != "vocabulary_size":
            continue
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    if head.pad_labels_to is not None:
        if isinstance(head.composition, MultiSense):
            raise ValueError(
                "`pad_labels_to` must be None if words have several senses. Set `num_senses` to "
                f"the padded number of labels instead. Received: pad_labels_to={head.pad_labels_to}"
            )
        if head.pad_labels_to < head.vocabulary_size:
            raise ValueError(
                f"`pad_labels_to` must be at least the {head.vocabulary_size} words. "
                f"Received: pad_labels_to={head.pad_labels_to}"
            )
    if head.logit_soft_cap is not None and not head.logit_soft_cap > 0:
        raise ValueError(
            "`logit_soft_cap` must be positive or None. "
            f"Received: logit_soft_cap={head.logit_soft_cap!r}"
        )
    if head.z_loss < 0:
        raise ValueError(f"`z_loss` must not be negative. Received: z_loss={head.z_loss!r}")
    for name in ("embeddings_regularizer", "embeddings_constraint"):
        if head.embedding is not None and getattr(head, name) is not None:
            raise ValueError(
                f"`{name}` is only for the layer's own label embeddings. Set it in the shared "
                f"`embedding` instead. Received: {name}={getattr(head, name)!r}"
            )


def check_embedding(head, embedding):
    """Raises `ValueError` if an output layer cannot compute its labels from an embedding."""
    if not isinstance(embedding, keras.layers.Embedding):
        raise ValueError(
            f"`embedding` must be a keras.layers.Embedding. Received: embedding={embedding!r}"
        )
    if isinstance(embedding, SenseEmbedding):
        embedding.check_head(head)
    labels = head.composition.num_labels(head.vocabulary_size)
    rows = head.pad_labels_to or labels
    if embedding.input_dim != rows:
        raise ValueError(
            f"`embedding` must have one row for each of the {labels} labels, or `pad_labels_to` "
            "rows. "
            f"Received: input_dim={embedding.input_dim}, pad_labels_to={head.pad_labels_to}"
        )
    if head.embedding_dim not in (None, embedding.output_dim):
        raise ValueError(
            f"`embedding_dim` must be None or {embedding.output_dim}, the width of `embedding`. "
            f"Received: embedding_dim={head.embedding_dim}"
        )
    if not embedding.built:
        check_rows(f"{embedding.name}/embeddings", rows, ADVICE)
