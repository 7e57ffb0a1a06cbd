"""The embedding table for the labels of a tied output layer, for all kinds of embeddings."""

import keras
from keras import ops


def embedding_table(embedding: keras.layers.Embedding):
    """Returns the table `[V, d]` of word embeddings for the output.

    - For a plain embedding, the table is its variable. With LoRA, it is a tensor, the sum of the
      variable and the low-rank product.
    - A quantised embedding stores integers and scales, so the function looks up the vectors of all
      words.
    - An untied `ReversibleEmbedding` (`tie_weights=False`) has a second table for the output.

    Raises:
        ValueError: The second table is quantised in a way that cannot be dequantised.
    """
    mode = embedding.quantization_mode
    if not getattr(embedding, "tie_weights", True):
        return _output_table(embedding, mode)
    if mode is None:
        return embedding.embeddings
    return embedding(ops.arange(embedding.input_dim))


def embedding_variable(embedding: keras.layers.Embedding) -> tuple[keras.Variable, int]:
    """Returns the variable that stores the embeddings for the output, and its axis of words."""
    variables = {variable.name: variable for variable in embedding.variables}
    if not getattr(embedding, "tie_weights", True):
        return variables["reverse_embeddings"], 1
    return variables["embeddings"], 0


def _output_table(embedding, mode):
    table = embedding.reverse_embeddings  # [d, V]
    if mode == "int8":
        table = ops.cast(table, embedding.compute_dtype) / embedding.reverse_embeddings_scale
    elif mode is not None:
        raise ValueError(
            f"The output table of the embedding {embedding.name!r} (`tie_weights=False`) must be "
            f'unquantised or in "int8". Received: quantization_mode={mode!r}'
        )
    return ops.transpose(table)
