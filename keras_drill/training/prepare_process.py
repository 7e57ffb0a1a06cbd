"""Settings of TensorFlow and Keras that hold for the whole process."""

import keras
import tensorflow as tf

from keras_drill.training.config import RunConfig


def prepare_process(config: RunConfig) -> None:
    """Sets the precision and, if the options say so, deterministic operations.

    For programs that train one run; a library call must not change what other code relies on.
    """
    keras.config.set_dtype_policy(config.training.precision)
    if config.training.deterministic:
        tf.config.experimental.enable_op_determinism()
