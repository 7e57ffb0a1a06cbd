"""TensorFlow without its log messages."""

import os
import sys
import tempfile

import keras_drill


def import_tensorflow() -> None:
    """Imports TensorFlow and all of this package; what is logged meanwhile is shown on failure.

    TensorFlow writes several lines about missing CUDA drivers to the standard error stream before
    any log level applies, and would hide a short error message among them.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryFile() as log:
        stream = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            import tensorflow as tf
            import tensorflow_text  # noqa: F401  registers the operations of exported models

            tf.config.list_physical_devices()
            for (
                name
            ) in keras_drill.__all__:  # Keras finds the classes of saved models once imported
                getattr(keras_drill, name)
            tf.get_logger().setLevel("ERROR")  # warnings about retracing are for programmers
        except BaseException:
            log.seek(0)
            os.write(stream, log.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stream, 2)
            os.close(stream)
