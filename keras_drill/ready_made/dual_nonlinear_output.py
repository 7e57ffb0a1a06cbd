from typing import Any

import keras

from keras_drill.label_encoders import DualNonlinearLabelEncoder
from keras_drill.output_layer import OutputLayer
from keras_drill.ready_made.flat_config import flat_config
from keras_drill.types import Activation, Initializer


@keras.saving.register_keras_serializable(package="keras_drill")
class DualNonlinearOutput(OutputLayer):
    """A dual nonlinear output layer: logits `g_out(E) g_in(h) + b`.

    g_out and g_in are dense layers that map the embeddings E `[V, d]` of the V words and a hidden
    state h `[d_h]` to a joint space of width d_j; see `keras_drill.DualNonlinearLabelEncoder`. b
    are the biases. The layer returns the log-softmax of the logits. The layer has
    `d * d_j + d_j * d_h + 2 d_j + V` weights in addition to the embeddings.

    Args:
        vocabulary_size: Number of words V.
        embedding: The `keras.layers.Embedding` from which the labels are computed, usually the
            input embedding of the backbone. With `None`, the layer has its own label embeddings.
        units: Width d_j of the joint space.
        activation: Activation of both layers.
        kernel_initializer: Initializer of the kernels of both layers.
        learning_rate_multiplier: Factor of every step of the optimizer on the weights of both
            layers; see `keras_drill.label_encoders.ResidualNetwork`.
        **kwargs: Other arguments of `keras_drill.OutputLayer`, except `label_encoder`.

    Example:

    >>> embedding = keras.layers.Embedding(11, 3)
    >>> keras_drill.DualNonlinearOutput(11, embedding, units=5)(keras.ops.ones((2, 7))).shape
    TensorShape([2, 11])

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: keras.layers.Embedding | None = None,
        units: int = 512,
        activation: Activation = "tanh",
        kernel_initializer: Initializer = "glorot_uniform",
        learning_rate_multiplier: float = 1.0,
        **kwargs: Any,
    ):
        encoder = DualNonlinearLabelEncoder(
            units=units,
            activation=activation,
            kernel_initializer=kernel_initializer,
            learning_rate_multiplier=learning_rate_multiplier,
            dtype=kwargs.get("dtype"),
        )
        super().__init__(vocabulary_size, embedding, label_encoder=encoder, **kwargs)

    def get_config(self) -> dict:
        return flat_config(super().get_config(), "label_encoder", self.label_encoder)
