from typing import Any

import keras

from keras_drill.label_encoders import ResidualLabelEncoder
from keras_drill.output_layer import OutputLayer
from keras_drill.ready_made.flat_config import flat_config
from keras_drill.types import Activation, Initializer


@keras.saving.register_keras_serializable(package="keras_drill")
class DrillOutput(OutputLayer):
    """The deep residual output layer (DRILL): logits `E^(k) h + b`.

    A residual network of k layers computes the labels E^(k), the output embeddings of the V words,
    from the word embeddings `[V, d]`; see `keras_drill.ResidualLabelEncoder`. h is a hidden state,
    and b are the biases. The layer returns the log-softmax of the logits. With the default options
    the layer has `k (d^2 + d) + V` weights in addition to the embeddings.

    Args:
        vocabulary_size: Number of words V.
        embedding: The `keras.layers.Embedding` from which the labels are computed, usually the
            input embedding of the backbone. With `None`, the layer has its own label embeddings.
        depth: Number of layers k of the label network.
        units: Width of every layer, and so of the labels; `None` is the embedding's width. Another
            width needs `residual_to_input=False`.
        activation: Any Keras activation; the paper uses sigmoid, tanh and relu.
        dropout: Dropout rate on the input of every layer of the label network and, with `dual`, of
            the network for hidden states.
        variational_dropout: Whether all labels share one dropout mask. By default, each label has
            its own mask.
        residual_to_input: Whether to add the word embedding to every layer's output.
        residual_to_previous: Whether to add the previous layer's output to the output of every
            layer after the first.
        dual: Whether to also apply a network with the same options, but its own weights, to the
            hidden states.
        gated: Whether to multiply every layer's activation by a trainable gate, one number for each
            unit, which starts at 0. With the default residual connections, the labels are then the
            embeddings at first, so a trained model whose output layer is replaced by this one
            (`LanguageModel.with_head`) keeps its probabilities.
        kernel_initializer: Initializer of the kernels of all layers of the network.
        seed: Integer seed of the dropout masks, or `None` for a random seed.
        learning_rate_multiplier: Factor of every step of the optimizer on the weights of these
            networks; see `keras_drill.label_encoders.ResidualNetwork`.
        **kwargs: Other arguments of `keras_drill.OutputLayer`, except `label_encoder`.

    Example:

    >>> embedding = keras.layers.Embedding(11, 3)
    >>> keras_drill.DrillOutput(11, embedding, depth=2)(keras.ops.ones((2, 3))).shape
    TensorShape([2, 11])

    References:
        - [Pappas & Henderson, 2019](https://arxiv.org/abs/1905.05513)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: keras.layers.Embedding | None = None,
        depth: int = 4,
        units: int | None = None,
        activation: Activation = "relu",
        dropout: float = 0.0,
        variational_dropout: bool = False,
        residual_to_input: bool = True,
        residual_to_previous: bool = False,
        dual: bool = False,
        gated: bool = False,
        kernel_initializer: Initializer = "glorot_uniform",
        seed: int | None = None,
        learning_rate_multiplier: float = 1.0,
        **kwargs: Any,
    ):
        encoder = ResidualLabelEncoder(
            depth=depth,
            units=units,
            activation=activation,
            dropout=dropout,
            variational_dropout=variational_dropout,
            residual_to_input=residual_to_input,
            residual_to_previous=residual_to_previous,
            dual=dual,
            gated=gated,
            kernel_initializer=kernel_initializer,
            seed=seed,
            learning_rate_multiplier=learning_rate_multiplier,
            dtype=kwargs.get("dtype"),
        )
        super().__init__(vocabulary_size, embedding, label_encoder=encoder, **kwargs)

    def get_config(self) -> dict:
        return flat_config(super().get_config(), "label_encoder", self.label_encoder)
