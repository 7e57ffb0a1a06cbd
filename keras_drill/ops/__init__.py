import keras

if keras.backend.backend() not in ("tensorflow", "jax"):
    raise ImportError(
        "keras_drill runs on Keras' TensorFlow and JAX backends: set the environment variable "
        "KERAS_BACKEND to one of them before Keras is imported. "
        f"Received: backend {keras.backend.backend()!r}"
    )

from keras_drill.ops.linear_cross_entropy import linear_cross_entropy

__all__ = ["linear_cross_entropy"]
