"""What an output layer's constructor refuses."""

import keras

from keras_drill.senses import SenseEmbedding


def check_arguments(head):
    """Raises `ValueError` for arguments of `OutputLayer` that are out of range."""
    for name in ("vocabulary_size", "embedding_dim", "tile_size", "tile_bytes"):
        value = getattr(head, name)
        if value is None and name != "vocabulary_size":
            continue
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    if head.logit_soft_cap is not None and not head.logit_soft_cap > 0:
        raise ValueError(f"`logit_soft_cap` must be positive. Received: {head.logit_soft_cap!r}")
    if head.z_loss < 0:
        raise ValueError(f"`z_loss` must not be negative. Received: z_loss={head.z_loss!r}")
    for name in ("embeddings_regularizer", "embeddings_constraint"):
        if head.embedding is not None and getattr(head, name) is not None:
            raise ValueError(
                f"`{name}` is for label embeddings of the layer's own; a shared `embedding` takes "
                f"its own. Received: {name}={getattr(head, name)!r}"
            )


def check_embedding(head, embedding):
    """Raises `ValueError` for an embedding that an output layer cannot make its labels from."""
    if not isinstance(embedding, keras.layers.Embedding):
        raise ValueError(f"`embedding` must be a keras.layers.Embedding. Received: {embedding!r}")
    rows = head.composition.num_labels(head.vocabulary_size)
    if embedding.input_dim != rows:
        raise ValueError(
            f"`embedding` must have one row for each of the {rows} labels. "
            f"Received: input_dim={embedding.input_dim}"
        )
    if head.embedding_dim not in (None, embedding.output_dim):
        raise ValueError(
            f"`embedding_dim` must be None or the embedding's {embedding.output_dim}. "
            f"Received: embedding_dim={head.embedding_dim}"
        )
    if isinstance(embedding, SenseEmbedding):
        embedding.check_head(head)
