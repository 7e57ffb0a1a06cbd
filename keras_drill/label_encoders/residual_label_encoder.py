from typing import Any

import keras

from keras_drill.label_encoders.label_encoder import LabelEncoder
from keras_drill.label_encoders.residual_network import ResidualNetwork
from keras_drill.ops.seed_generator import derived_seed
from keras_drill.types import Activation, Initializer

_HIDDEN_SIDE = 1000  # index for `derived_seed`, above the indices of a model's other layers


@keras.saving.register_keras_serializable(package="keras_drill")
class ResidualLabelEncoder(LabelEncoder):
    """Deep residual label encoder (DRILL).

    Pass this encoder to `keras_drill.OutputLayer`, or use `keras_drill.DrillOutput`. A feed-forward
    network of `depth` layers computes the labels (output embeddings) of all words from their
    embeddings, with a residual connection from the input to every layer; see
    `keras_drill.label_encoders.ResidualNetwork` for the equation. The network shares information
    between words. The labels are computed once per training step, whatever the number of tokens. In
    an exported model the labels are constant, so this network has no cost at inference. For
    embeddings of width d, `units=None` and `gated=False`, the layer has `depth * (d^2 + d)`
    weights, or twice as many with `dual`.

    Args:
        depth: Number of layers of the label network.
        units: Width of every layer, and so of the labels; `None` is the embedding's width. Another
            width needs `residual_to_input=False`.
        activation: Any Keras activation. The paper uses sigmoid, tanh and relu.
        dropout: Dropout rate on the input of every layer, as in the authors' code. (The paper
            applies dropout to the output.) With `dual`, the hidden states are the input of the
            second network and also have dropout, unlike in the authors' code.
        variational_dropout: Whether all labels share one dropout mask. By default, each label has
            its own mask.
        residual_to_input: Whether to add the word embedding to every layer's output.
        residual_to_previous: Whether to add the previous layer's output to the output of every
            layer after the first.
        dual: Whether to also apply a network with the same options, but its own weights, to the
            hidden states.
        gated: Whether to multiply every layer's activation by a trainable gate, one number for each
            unit, which starts at 0. With the default residual connections, the labels are then the
            embeddings at first, so a trained model whose output layer is replaced by one with this
            encoder (`LanguageModel.with_head`) keeps its probabilities.
        kernel_initializer: Initializer of the kernels of all layers.
        seed: Integer seed of the dropout masks, or `None` for a random seed.
        learning_rate_multiplier: Factor of every step of the optimizer on the networks' weights;
            see `keras_drill.label_encoders.ResidualNetwork`.
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> embedding = keras.layers.Embedding(11, 3)
    >>> head = keras_drill.OutputLayer(
    ...     11,
    ...     embedding=embedding,
    ...     label_encoder=keras_drill.ResidualLabelEncoder(depth=4, dropout=0.6),
    ... )
    >>> head(keras.ops.ones((2, 3))).shape
    TensorShape([2, 11])

    References:
        - [Pappas & Henderson, Deep Residual Output Layers for Neural Language Generation,
          ICML 2019](https://arxiv.org/abs/1905.05513)
    """

    def __init__(
        self,
        depth: int = 1,
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
        super().__init__(**kwargs)
        self.depth = depth
        self.units = units
        self.activation = keras.activations.get(activation)
        self.dropout = dropout
        self.variational_dropout = variational_dropout
        self.residual_to_input = residual_to_input
        self.residual_to_previous = residual_to_previous
        self.dual = dual
        self.gated = gated
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.learning_rate_multiplier = learning_rate_multiplier
        self.label_network = self._network("label_network", seed)
        # With the same seed, both networks would drop the same entries.
        self.hidden_network = (
            self._network("hidden_network", derived_seed(seed, _HIDDEN_SIDE)) if dual else None
        )

    def _network(self, name: str, seed: int | None) -> ResidualNetwork:
        return ResidualNetwork(
            depth=self.depth,
            units=self.units,
            activation=self.activation,
            dropout=self.dropout,
            variational_dropout=self.variational_dropout,
            residual_to_input=self.residual_to_input,
            residual_to_previous=self.residual_to_previous,
            gated=self.gated,
            kernel_initializer=self.kernel_initializer.clone(),
            seed=seed,
            learning_rate_multiplier=self.learning_rate_multiplier,
            dtype=self.dtype_policy,
            name=name,
        )

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "depth": self.depth,
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "variational_dropout": self.variational_dropout,
            "residual_to_input": self.residual_to_input,
            "residual_to_previous": self.residual_to_previous,
            "dual": self.dual,
            "gated": self.gated,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
            "learning_rate_multiplier": self.learning_rate_multiplier,
        }
