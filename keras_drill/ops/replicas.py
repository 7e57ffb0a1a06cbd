"""Functions for replicas of `tf.distribute`. They also work without replicas, and on JAX."""

import keras

from keras_drill.types import Tensor


def num_replicas() -> int:
    """Returns how many `tf.distribute` replicas sum their gradients; 1 without a strategy.

    A replica's mean loss is divided by this number, as in Keras' own losses.
    """
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def replica_id() -> int | Tensor:
    """Returns the index of the replica that runs this code, 0 outside of a replica's step."""
    if num_replicas() == 1:
        return 0
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return 0 if replica is None else replica.replica_id_in_sync_group


def sum_over_replicas(values: Tensor) -> Tensor:
    """Returns the sum of all replicas' `values`, inside a replica's step.

    No gradient passes through the sum. Outside of a replica's step the function returns `values`
    unchanged.
    """
    if num_replicas() == 1:
        return values
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None:
        return values
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.stop_gradient(values))
