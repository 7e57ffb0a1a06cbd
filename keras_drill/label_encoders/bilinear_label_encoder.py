from typing import Any

import keras

from keras_drill.label_encoders.label_encoder import LabelEncoder, UnquantizedDense
from keras_drill.ops.scaled_steps import check_learning_rate_multiplier
from keras_drill.types import Initializer, Shape


@keras.saving.register_keras_serializable(package="keras_drill")
class BilinearLabelEncoder(LabelEncoder):
    """Bilinear mapping between labels and hidden states: scores `E W h`.

    Pass this encoder to `keras_drill.OutputLayer`, or use `keras_drill.BilinearOutput`. E `[V, d]`
    are the embeddings of the V words, h `[d_h]` is a hidden state, and W `[d, d_h]` are the
    encoder's weights. The labels are E, and the encoder maps the hidden states: `E (W h)`. For the
    N hidden states of a batch this needs `N d d_h` multiplications, instead of `V d d_h` for all
    labels.

    Args:
        kernel_initializer: Initializer of `W`.
        learning_rate_multiplier: Factor of every step of the optimizer on `W`. `W` is stored
            divided by this number; see `keras_drill.label_encoders.ResidualNetwork`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> head = keras_drill.OutputLayer(
    ...     11, embedding_dim=3, label_encoder=keras_drill.BilinearLabelEncoder()
    ... )
    >>> head(keras.ops.ones((2, 7))).shape  # hidden states of another width than the labels
    TensorShape([2, 11])

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513), section 2.3
    """

    def __init__(
        self,
        kernel_initializer: Initializer = "glorot_uniform",
        learning_rate_multiplier: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_learning_rate_multiplier(learning_rate_multiplier)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.learning_rate_multiplier = learning_rate_multiplier

    def build(self, embeddings_shape: Shape, hidden_shape: Shape) -> None:
        self.hidden_network = UnquantizedDense(
            embeddings_shape[-1],
            use_bias=False,
            kernel_initializer=self.kernel_initializer,
            learning_rate_multiplier=self.learning_rate_multiplier,
            dtype=self.dtype_policy,
            name="hidden_network",
        )
        super().build(embeddings_shape, hidden_shape)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "learning_rate_multiplier": self.learning_rate_multiplier,
        }
