import keras


def num_replicas() -> int:
    """Replicas that add up their gradients: a mean over a replica's tokens is divided by it, as
    Keras' own losses do. 1 outside `tf.distribute`."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync
