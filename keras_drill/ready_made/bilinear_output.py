from typing import Any

import keras

from keras_drill.label_encoders import BilinearLabelEncoder
from keras_drill.output_layer import OutputLayer
from keras_drill.ready_made.flat_config import flat_config
from keras_drill.types import Initializer


@keras.saving.register_keras_serializable(package="keras_drill")
class BilinearOutput(OutputLayer):
    """A bilinear output layer: logits `E W h + b`.

    E `[V, d]` are the embeddings of the V words, h `[d_h]` is a hidden state, W `[d, d_h]` is a
    weight matrix, and b are the biases; see `keras_drill.BilinearLabelEncoder`. The layer returns
    the log-softmax of the logits. The layer has `d * d_h + V` weights in addition to the
    embeddings.

    Args:
        vocabulary_size: Number of words V.
        embedding: The `keras.layers.Embedding` from which the labels are computed, usually the
            input embedding of the backbone. With `None`, the layer has its own label embeddings.
        kernel_initializer: Initializer of W.
        learning_rate_multiplier: Factor of every step of the optimizer on W; see
            `keras_drill.label_encoders.ResidualNetwork`.
        **kwargs: Other arguments of `keras_drill.OutputLayer`, except `label_encoder`.

    Example:

    >>> embedding = keras.layers.Embedding(11, 3)
    >>> keras_drill.BilinearOutput(11, embedding)(keras.ops.ones((2, 7))).shape
    TensorShape([2, 11])

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: keras.layers.Embedding | None = None,
        kernel_initializer: Initializer = "glorot_uniform",
        learning_rate_multiplier: float = 1.0,
        **kwargs: Any,
    ):
        encoder = BilinearLabelEncoder(
            kernel_initializer=kernel_initializer,
            learning_rate_multiplier=learning_rate_multiplier,
            dtype=kwargs.get("dtype"),
        )
        super().__init__(vocabulary_size, embedding, label_encoder=encoder, **kwargs)

    def get_config(self) -> dict:
        return flat_config(super().get_config(), "label_encoder", self.label_encoder)
