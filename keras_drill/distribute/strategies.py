"""Creates the strategies of `tf.distribute` with which Keras can train, by name."""

import json
import os

import tensorflow as tf

STRATEGIES = ("none", "mirrored", "multi-worker", "tpu")


def strategy(name: str) -> tf.distribute.Strategy:
    """Creates a strategy of `tf.distribute` by its name.

    Create and compile the model in the context of the result's method `scope()`. The names are:

    - `"none"`: one device; TensorFlow's default strategy.
    - `"mirrored"`: all GPUs of this machine, or without GPUs all logical CPUs (one, unless you call
      `tf.config.set_logical_device_configuration`).
    - `"multi-worker"`: the processes (workers) in the environment variable `TF_CONFIG`, with all
      GPUs of each process. The call waits for all processes. Call the function before any other
      TensorFlow operation.
    - `"tpu"`: the TPU of this machine, or the TPU in the environment variable `TPU_NAME`.

    Args:
        name: One of `keras_drill.distribute.STRATEGIES`.

    Raises:
        ValueError: `name` is unknown. With "multi-worker" also if `TF_CONFIG` is missing or
            invalid.

    Example:

    >>> keras_drill.distribute.strategy("mirrored").num_replicas_in_sync
    1

    References:
        - [TF_CONFIG](https://www.tensorflow.org/guide/distributed_training#TF_CONFIG)
    """
    if name in ("parameter-server", "ps"):
        raise ValueError(
            "`name` must not be a parameter server strategy, because Keras 3 does not train with "
            "parameter servers: use 'multi-worker', which keeps all variables on each worker. "
            f"Received: name={name!r}"
        )
    if name not in STRATEGIES:
        raise ValueError(f"`name` must be one of {STRATEGIES}. Received: name={name!r}")
    if name == "mirrored":
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if name == "multi-worker":
        _check_tf_config(os.environ.get("TF_CONFIG", ""))
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect()
        return tf.distribute.TPUStrategy(resolver)
    return tf.distribute.get_strategy()


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process is the chief.

    Of several processes (workers), only the chief should write files and show progress. A single
    process is always the chief.

    Args:
        strategy: The strategy under which the model was created.

    Example:

    >>> strategy = keras_drill.distribute.strategy("none")
    >>> keras_drill.distribute.is_chief(strategy)
    True
    """
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type:
        return True
    chiefs = "chief" in resolver.cluster_spec().jobs
    return resolver.task_type == "chief" or (
        not chiefs and resolver.task_type == "worker" and resolver.task_id == 0
    )


def _check_tf_config(text: str) -> None:
    form = (
        '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}, '
        "equal in all processes except for the index"
    )
    try:
        config = json.loads(text)
        cluster, kind, index = config["cluster"], config["task"]["type"], config["task"]["index"]
        place = cluster[kind][int(index)] if int(index) >= 0 else None
    except (ValueError, KeyError, IndexError, TypeError):
        place = None
    if place is None:
        raise ValueError(
            f"The environment variable TF_CONFIG must be {form}. Received: TF_CONFIG={text!r}"
        )
    if "ps" in cluster:
        raise ValueError(
            "The environment variable TF_CONFIG must contain workers only, because Keras 3 does "
            f"not train with parameter servers ('ps'). Received: TF_CONFIG={text!r}"
        )
