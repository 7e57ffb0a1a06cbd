from typing import Any

import keras
from keras import ops

from keras_drill.ops.scaled_steps import scaled_steps, stored_initializer
from keras_drill.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class UnquantizedDense(keras.layers.Dense):
    """A `Dense` that `Model.quantize` leaves as it is, as it does subclasses.

    A quantised layer has other weights, of which the config of an output layer knows nothing; and
    the weights of a label encoder are small beside the embeddings.

    Args:
        *args: Positional arguments of `keras.layers.Dense`.
        learning_rate_multiplier: Multiplies every step of the optimizer on the weights, which are
            stored divided by it.
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
    """Maps word embeddings to output labels, and hidden states to the space the labels live in.

    A label encoder is a pair of networks, either of which may be missing (the identity):
    `label_network` turns embeddings `[V, d]` into labels `[V, d_j]`, `hidden_network` turns hidden
    states `[..., d_h]` into context vectors `[..., d_j]`. Subclasses set them in `__init__`, or in
    `build` where they need the widths.

    At inference the labels are a constant: `OutputLayer.folded()` computes them once and keeps
    `hidden_network` only.

    Shapes:
        embeddings: `[V, d]`.
        hidden: `[..., d_h]`.
        labels: `[V, d_j]`, contexts: `[..., d_j]`.

    Args:
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Raises:
        TypeError: `LabelEncoder` itself is instantiated, not a subclass.
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
        """Creates the networks.

        Args:
            embeddings_shape: Shape of the embeddings, `(V, d)`.
            hidden_shape: Shape of the hidden states, `(..., d_h)`.

        Raises:
            ValueError: Labels and contexts would not have the same width.
        """
        for network in (self.label_network, self.hidden_network):
            if network is not None and not self.trainable:  # it may be younger than that
                network.trainable = False
        label_width = self._label_width(embeddings_shape)
        hidden_width = self._output_width(self.hidden_network, hidden_shape)
        if label_width != hidden_width:
            raise ValueError(
                f"{type(self).__name__} compares labels with hidden states, whose widths must be "
                "equal. Make the backbone's last layer as wide as the embedding, or use a label "
                "encoder that maps between them (bilinear, dual nonlinear). Received: labels of "
                f"width {label_width} and contexts of width {hidden_width}"
            )
        self.built = True

    @property
    def reads_embeddings(self) -> bool:
        """Whether labels are computed from embeddings. Otherwise an output layer has none."""
        return True

    def check_words(self, vocabulary_size: int) -> None:
        """Raises `ValueError` if the encoder has another number of words."""
        return

    def call(
        self, embeddings: Tensor, training: bool | None = None, words: Tensor | None = None
    ) -> Tensor:
        """`encode_labels`."""
        return self.encode_labels(embeddings, training=training, words=words)

    def encode_labels(
        self, embeddings: Tensor, training: bool | None = None, words: Tensor | None = None
    ) -> Tensor:
        """Embeddings to labels.

        Args:
            embeddings: `[M, d]`.
            training: Whether dropout is on.
            words: `[M]`, the word of every label, where words have several; `None` where label j
                is that of word j.

        Returns:
            `[M, d_j]`.
        """
        if self.label_network is None:
            return embeddings
        return self.label_network(embeddings, training=training)

    def encode_hidden(self, hidden: Tensor, training: bool | None = None) -> Tensor:
        """`[..., d_h]` hidden states to `[..., d_j]` contexts."""
        if self.hidden_network is None:
            return hidden
        return self.hidden_network(hidden, training=training)

    def compute_output_shape(self, embeddings_shape: Shape) -> Shape:
        return (*embeddings_shape[:-1], self._label_width(embeddings_shape))

    def get_config(self) -> dict:
        return super().get_config()  # overridden, or Keras would refuse a DTypePolicy as `dtype`

    def _label_width(self, embeddings_shape) -> int:
        return self._output_width(self.label_network, embeddings_shape)

    @staticmethod
    def _output_width(network, shape) -> int:
        """Width after `network`, which is built if it is not yet."""
        if network is None:
            return shape[-1]
        if not network.built:
            network.build(shape)
        return network.compute_output_shape(shape)[-1]
