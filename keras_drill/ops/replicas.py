"""Functions for replicas of `tf.distribute`; alone where there are none."""

import keras

from keras_drill.types import Tensor


def num_replicas() -> int:
    """Replicas that add up their gradients: a mean over a replica's tokens is divided by it, as
    Keras' own losses do. 1 outside `tf.distribute`."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def replica_id() -> int | Tensor:
    """Number of the replica that runs this: 0 outside of a replica's step."""
    if num_replicas() == 1:
        return 0
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return 0 if replica is None else replica.replica_id_in_sync_group


def sum_over_replicas(values: Tensor) -> Tensor:
    """The sum of what every replica has, inside a replica's step; elsewhere `values` themselves.

    Nothing flows back through it.
    """
    if num_replicas() == 1:
        return values
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    if replica is None:
        return values
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.stop_gradient(values))
