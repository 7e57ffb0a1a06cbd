import keras


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

    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.label_network = None
        self.hidden_network = None

    def build(self, embeddings_shape, hidden_shape):
        """Creates the networks.

        Args:
            embeddings_shape: Shape of the embeddings, `(V, d)`.
            hidden_shape: Shape of the hidden states, `(..., d_h)`.

        Raises:
            ValueError: Labels and contexts would not have the same width.
        """
        label_width = self._output_width(self.label_network, embeddings_shape)
        hidden_width = self._output_width(self.hidden_network, hidden_shape)
        if label_width != hidden_width:
            raise ValueError(
                f"{type(self).__name__} compares labels with hidden states, whose widths must be "
                "equal. Make the backbone's last layer as wide as the embedding, or use a label "
                "encoder that maps between them (bilinear, dual nonlinear). Received: labels of "
                f"width {label_width} and contexts of width {hidden_width}"
            )
        self.built = True

    def call(self, embeddings, training=None):
        """`encode_labels`."""
        return self.encode_labels(embeddings, training=training)

    def encode_labels(self, embeddings, training=None):
        """`[V, d]` embeddings to `[V, d_j]` labels."""
        if self.label_network is None:
            return embeddings
        return self.label_network(embeddings, training=training)

    def encode_hidden(self, hidden, training=None):
        """`[..., d_h]` hidden states to `[..., d_j]` contexts."""
        if self.hidden_network is None:
            return hidden
        return self.hidden_network(hidden, training=training)

    def compute_output_shape(self, embeddings_shape):
        return (*embeddings_shape[:-1], self._output_width(self.label_network, embeddings_shape))

    def get_config(self) -> dict:
        return super().get_config()  # overridden, or Keras would refuse a DTypePolicy as `dtype`

    @staticmethod
    def _output_width(network, shape) -> int:
        """Width after `network`, which is built if it is not yet."""
        if network is None:
            return shape[-1]
        if not network.built:
            network.build(shape)
        return network.compute_output_shape(shape)[-1]
