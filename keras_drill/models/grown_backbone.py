"""Copies a backbone with additional words in its vocabulary."""

import keras
import numpy as np

from keras_drill.models.backbone_inputs import shape_built_for
from keras_drill.output_layer.more_words import grown


def grown_backbone(
    backbone: keras.Model, vocabulary_size: int, by: int, read_as: int
) -> keras.Model:
    """Returns a copy of `backbone` with `by` additional words.

    The embeddings of the additional words are copies of the embedding of the word `read_as`.

    The copy is created from the backbone's config with a larger `vocabulary_size`, or `input_dim`
    of an embedding.

    Raises:
        ValueError: The config has no such entry, or the backbone has weights that the config does
            not define.
    """
    sizes = {"vocabulary_size": vocabulary_size, "input_dim": vocabulary_size}
    new = type(backbone).from_config(grown(backbone.get_config(), sizes, by))
    if not new.built:
        new.build(shape_built_for(backbone))
    pairs = list(zip(backbone.variables, new.variables, strict=False))
    has_grown = [a.shape != b.shape for a, b in pairs]
    if len(backbone.variables) != len(new.variables) or not any(has_grown):
        raise ValueError(
            "To add words, the config of the backbone must have a `vocabulary_size` or `input_dim` "
            f"of {vocabulary_size}, and its embeddings must be neither quantised nor have LoRA. "
            f"Received: {backbone!r}"
        )
    for old, variable in pairs:
        values = np.asarray(old.value)
        for axis, (size, wanted) in enumerate(zip(old.shape, variable.shape, strict=True)):
            if wanted != size:
                more = np.repeat(values.take([read_as], axis), wanted - size, axis)
                values = np.concatenate([values, more], axis)
        variable.assign(values)
    return new
