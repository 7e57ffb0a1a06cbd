from typing import Any

import keras

from keras_drill.output_layer import OutputLayer


@keras.saving.register_keras_serializable(package="keras_drill")
class TiedOutput(OutputLayer):
    """Output layer with weight tying: the labels are the word embeddings E.

    Labels are the output embeddings of the words. The logits of a hidden state h `[d]` are
    `E h + b` with E `[V, d]`; the layer returns their log-softmax. Besides the shared E, the layer
    has V weights, the biases b.

    Args:
        vocabulary_size: Number of words V.
        embedding: The `keras.layers.Embedding` to share, usually the input embedding of the
            backbone. Its `output_dim` must be the width of the hidden states.
        **kwargs: Other arguments of `keras_drill.OutputLayer`, except `label_encoder`.

    Example:

    >>> embedding = keras.layers.Embedding(11, 3)
    >>> keras_drill.TiedOutput(11, embedding)(keras.ops.ones((2, 3))).shape
    TensorShape([2, 11])

    References:
        - [Press & Wolf, 2017](https://arxiv.org/abs/1608.05859)
        - [Inan et al., 2017](https://arxiv.org/abs/1611.01462)
    """

    def __init__(self, vocabulary_size: int, embedding: keras.layers.Embedding, **kwargs: Any):
        if embedding is None:
            raise ValueError(
                "`embedding` must be a keras.layers.Embedding. Received: embedding=None"
            )
        super().__init__(vocabulary_size, embedding, **kwargs)

    def get_config(self) -> dict:
        config = super().get_config()
        del config["label_encoder"]
        return config
