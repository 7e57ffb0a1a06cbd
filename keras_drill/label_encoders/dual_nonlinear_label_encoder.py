from typing import Any

import keras

from keras_drill.label_encoders.label_encoder import LabelEncoder, UnquantizedDense
from keras_drill.ops.scaled_steps import check_learning_rate_multiplier
from keras_drill.types import Activation, Initializer, Shape


@keras.saving.register_keras_serializable(package="keras_drill")
class DualNonlinearLabelEncoder(LabelEncoder):
    """One nonlinear layer for labels and one for hidden states: scores `g_out(E) g_in(h)`.

    Pass this encoder to `keras_drill.OutputLayer`, or use `keras_drill.DualNonlinearOutput`. The
    layers map the embeddings E `[V, d]` of the V words and a hidden state h `[d_h]` to a joint
    space of width `d_j`: `g_out(E) = act(E U + u)` and `g_in(h) = act(h W + w)`, where `act` is the
    `activation`. The layers have `d * d_j + d_j * d_h + 2 * d_j` weights.

    Args:
        units: Width `d_j` of the joint space.
        activation: Activation of both layers.
        kernel_initializer: Initializer of `U` and `W`.
        learning_rate_multiplier: Factor of every step of the optimizer on both layers' weights. The
            weights are stored divided by this number; see
            `keras_drill.label_encoders.ResidualNetwork`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> encoder = keras_drill.DualNonlinearLabelEncoder(units=13)
    >>> head = keras_drill.OutputLayer(11, embedding_dim=3, label_encoder=encoder)
    >>> head(keras.ops.ones((2, 7))).shape
    TensorShape([2, 11])
    >>> head.encoded_labels().shape
    TensorShape([11, 13])

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513), section 2.3
    """

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        kernel_initializer: Initializer = "glorot_uniform",
        learning_rate_multiplier: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"`units` must be a positive integer. Received: units={units}")
        check_learning_rate_multiplier(learning_rate_multiplier)
        self.units = units
        self.activation = keras.activations.get(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.learning_rate_multiplier = learning_rate_multiplier

    def build(self, embeddings_shape: Shape, hidden_shape: Shape) -> None:
        self.label_network = self._dense("label_network")
        self.hidden_network = self._dense("hidden_network")
        super().build(embeddings_shape, hidden_shape)

    def _dense(self, name: str) -> UnquantizedDense:
        return UnquantizedDense(
            self.units,
            activation=self.activation,
            kernel_initializer=self.kernel_initializer,
            learning_rate_multiplier=self.learning_rate_multiplier,
            dtype=self.dtype_policy,
            name=name,
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "learning_rate_multiplier": self.learning_rate_multiplier,
        }
