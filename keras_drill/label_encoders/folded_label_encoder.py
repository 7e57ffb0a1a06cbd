from typing import Any

import keras

from keras_drill.label_encoders.label_encoder import LabelEncoder


@keras.saving.register_keras_serializable(package="keras_drill")
class FoldedLabelEncoder(LabelEncoder):
    """Label encoder for inference, which maps only hidden states: the labels are already encoded.

    You do not create this layer yourself. `OutputLayer.folded()` computes the labels (output
    embeddings) once, as constants, and creates this layer for the folded output layer.

    Args:
        hidden_network: The layer that maps hidden states to contexts, the vectors that are compared
            with the labels; `None` is the identity.
        **kwargs: Keyword arguments of `keras.layers.Layer`.
    """

    def __init__(self, hidden_network: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.hidden_network = hidden_network

    def get_config(self) -> dict:
        network = self.hidden_network
        return {
            **super().get_config(),
            "hidden_network": network and keras.saving.serialize_keras_object(network),
        }

    @classmethod
    def from_config(cls, config: dict) -> "FoldedLabelEncoder":
        network = config.pop("hidden_network")
        return cls(network and keras.saving.deserialize_keras_object(network), **config)
