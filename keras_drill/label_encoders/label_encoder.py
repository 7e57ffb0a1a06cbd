from typing import Any

import keras
from keras import ops

from keras_drill.ops.scaled_steps import scaled_steps, stored_initializer
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class UnquantizedDense(keras.layers.Dense):
    """A `Dense` layer that `Model.quantize` does not change, because it is a subclass.

    A quantised layer has other weights, which an output layer could not restore from its config.
    The weights of a label encoder are small compared with the embeddings.

    Args:
        *args: Positional arguments of `keras.layers.Dense`.
        learning_rate_multiplier: Multiplies every step of the optimizer on the weights. The weights
            are stored divided by this number.
        **kwargs: Keyword arguments of `keras.layers.Dense`.
    """

    kernel_initializer: Any

    def __init__(self, *args: Any, learning_rate_multiplier: float = 1.0, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.learning_rate_multiplier = learning_rate_multiplier

    def build(self, input_shape: Shape) -> None:
        initializer = self.kernel_initializer
        self.kernel_initializer = stored_initializer(initializer, self.learning_rate_multiplier)
        super().build(input_shape)
        self.kernel_initializer = initializer

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        outputs = ops.matmul(inputs, self._value(self.kernel))
        if self.bias is not None:
            outputs = outputs + self._value(self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def _value(self, stored):
        return scaled_steps(ops.convert_to_tensor(stored), self.learning_rate_multiplier)

    def get_config(self) -> dict:
        return {**super().get_config(), "learning_rate_multiplier": self.learning_rate_multiplier}


class LabelEncoder(keras.layers.Layer):
    """Base class of label encoders, which compute an output layer's labels from word embeddings.

    A label is the output embedding of a word, or of one of its senses. There are M labels. A label
    encoder has two networks. `label_network` maps embeddings `[M, d]` to labels `[M, d_j]`.
    `hidden_network` maps hidden states `[..., d_h]` to contexts `[..., d_j]`, the vectors that are
    compared with the labels. Labels and contexts have the same width d_j. The network `None`, the
    default, is the identity. Subclasses set the networks in `__init__`, or in `build` if they
    depend on the widths of embeddings and hidden states. Pass an encoder to
    `keras_drill.OutputLayer`.

    At inference the labels are constant: `OutputLayer.folded()` computes the labels once, and keeps
    only `hidden_network`.

    Shapes:
        embeddings: `[M, d]`.
        hidden: `[..., d_h]`, hidden states.
        labels: `[M, d_j]`, contexts: `[..., d_j]`.

    Args:
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Raises:
        TypeError: `LabelEncoder` itself is instantiated, instead of a subclass.
    """

    def __init__(self, **kwargs: Any):
        if type(self) is LabelEncoder:
            raise TypeError(
                "LabelEncoder is a base class. Use keras_drill.IdentityLabelEncoder for labels "
                "that are the embeddings themselves. Received: LabelEncoder(...)"
            )
        super().__init__(**kwargs)
        self.label_network: keras.layers.Layer | None = None
        self.hidden_network: keras.layers.Layer | None = None

    def build(self, embeddings_shape: Shape, hidden_shape: Shape) -> None:
        """Builds the networks. The output layer calls this method in its own `build`.

        A subclass that creates networks in `build` calls `super().build` afterwards.

        Args:
            embeddings_shape: Shape of the embeddings, `(M, d)`.
            hidden_shape: Shape of the hidden states, `(..., d_h)`.

        Raises:
            ValueError: Labels and contexts would have different widths.
        """
        for network in (self.label_network, self.hidden_network):
            # A network may be created after `trainable` was set.
            if network is not None and not self.trainable:
                network.trainable = False
        label_width = self._label_width(embeddings_shape)
        hidden_width = self._output_width(self.hidden_network, hidden_shape)
        if label_width != hidden_width:
            raise ValueError(
                f"{type(self).__name__} compares labels with hidden states, whose widths must be "
                "equal. Make the backbone's last layer as wide as the embedding, or use a label "
                "encoder that maps between the widths, such as keras_drill.BilinearLabelEncoder. "
                f"Received: labels of width {label_width} and hidden states of width {hidden_width}"
            )
        self.built = True

    @property
    def reads_embeddings(self) -> bool:
        """Whether labels depend on embeddings; `True` by default. With `False`, the output layer
        has no embeddings.
        """
        return True

    def check_words(self, vocabulary_size: int) -> None:
        """Raises `ValueError` if the encoder is made for another number of words than its output
        layer, which calls this method. By default, an encoder accepts any number.
        """
        return

    def call(
        self, embeddings: Tensor, training: bool | None = None, words: Tensor | None = None
    ) -> Tensor:
        """Calls `encode_labels`, with the same arguments and result."""
        return self.encode_labels(embeddings, training=training, words=words)

    def encode_labels(
        self, embeddings: Tensor, training: bool | None = None, words: Tensor | None = None
    ) -> Tensor:
        """Maps embeddings to labels. The output layer calls this method.

        Args:
            embeddings: `[M, d]`, one row per label.
            training: Whether dropout is on.
            words: `[M]` integers, the word of every label, if words have several labels. `None` if
                label j belongs to word j.

        Returns:
            Labels `[M, d_j]`.
        """
        if self.label_network is None:
            return embeddings
        return self.label_network(embeddings, training=training)

    def encode_hidden(self, hidden: Tensor, training: bool | None = None) -> Tensor:
        """Maps hidden states `[..., d_h]` to contexts `[..., d_j]`, with dropout if `training` is
        true. The output layer calls this method.
        """
        if self.hidden_network is None:
            return hidden
        return self.hidden_network(hidden, training=training)

    def compute_output_shape(self, embeddings_shape: Shape) -> Shape:
        return (*embeddings_shape[:-1], self._label_width(embeddings_shape))

    def get_config(self) -> dict:
        return super().get_config()  # without this override Keras rejects a DTypePolicy as `dtype`

    def _label_width(self, embeddings_shape) -> int:
        return self._output_width(self.label_network, embeddings_shape)

    @staticmethod
    def _output_width(network, shape) -> int:
        """Returns the width of the output of `network`, and builds `network` if necessary."""
        if network is None:
            return shape[-1]
        if not network.built:
            network.build(shape)
        return network.compute_output_shape(shape)[-1]
