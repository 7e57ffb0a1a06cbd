import keras

from keras_drill.label_encoders.label_encoder import LabelEncoder


@keras.saving.register_keras_serializable(package="keras_drill")
class IdentityLabelEncoder(LabelEncoder):
    """Uses the embeddings themselves as labels, as a plain softmax and weight tying do.

    This is the default `label_encoder` of `keras_drill.OutputLayer`.

    Args:
        **kwargs: Keyword arguments of `keras.layers.Layer`.

    Example:

    >>> encoder = keras_drill.IdentityLabelEncoder()
    >>> encoder.build((5, 3), (2, 3))
    >>> encoder(keras.ops.ones((5, 3))).shape
    TensorShape([5, 3])
    """
