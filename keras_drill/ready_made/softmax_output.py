from typing import Any

import keras

from keras_drill.output_layer import OutputLayer


@keras.saving.register_keras_serializable(package="keras_drill")
class SoftmaxOutput(OutputLayer):
    """The plain softmax output layer: logits `W h + b`.

    W `[V, d_h]` are the labels (the output embeddings of the words), h `[d_h]` is a hidden state,
    and b are the biases. The layer returns the log-softmax of the logits. The layer has
    `V * d_h + V` weights.

    Args:
        vocabulary_size: Number of words V.
        **kwargs: Other arguments of `keras_drill.OutputLayer`, except `embedding` and
            `label_encoder`.

    Example:

    >>> keras_drill.SoftmaxOutput(11)(keras.ops.ones((2, 3))).shape
    TensorShape([2, 11])
    """

    def __init__(self, vocabulary_size: int, **kwargs: Any):
        super().__init__(vocabulary_size, **kwargs)

    def get_config(self) -> dict:
        config = super().get_config()
        del config["embedding"], config["label_encoder"]
        return config
