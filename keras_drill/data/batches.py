"""What batches of every kind check, and how they are handed out."""

import tensorflow as tf

from keras_drill.data.untuned import untuned


def check_at_least_one(**numbers: int | None) -> None:
    """Checks arguments that are counts; `None` is none."""
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={number}")


def check_seed(seed: int) -> None:
    """Checks a seed: NumPy's generator takes 32 bits."""
    if not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be from 0 to 2**32 - 1. Received: seed={seed}")


def check_first_batch(num_batches: int, first_batch: int) -> None:
    """Checks where in an epoch to begin."""
    if not 0 <= first_batch <= num_batches:
        raise ValueError(
            f"`first_batch` must be between 0 and `num_batches`={num_batches}. "
            f"Received: first_batch={first_batch}"
        )


def check_shard(batch_size: int | None, num_shards: int, shard: int) -> None:
    """Checks which rows of the batches are asked for; `None` where batches differ in size."""
    if num_shards < 1 or not 0 <= shard < num_shards:
        raise ValueError(
            "`num_shards` must be at least 1, and `shard` from 0 to less than it. "
            f"Received: num_shards={num_shards}, shard={shard}"
        )
    if batch_size is not None and batch_size % num_shards:
        raise ValueError(
            f"`num_shards` must divide `batch_size`={batch_size}. "
            f"Received: num_shards={num_shards}, shard={shard}"
        )


def whole_batches(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset, read ahead; `tf.distribute` does not hand its elements to different workers."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return untuned(dataset.with_options(options)).prefetch(2)
