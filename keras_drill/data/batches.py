"""Functions that all kinds of batches share: checks of arguments, and options of datasets."""

import tensorflow as tf

from keras_drill.data.checks import is_whole
from keras_drill.data.untuned import untuned


def check_at_least_one(**numbers: int | None) -> None:
    """Raises `ValueError` if an argument is neither a positive integer nor `None`."""
    for name, number in numbers.items():
        if number is None:
            continue
        if not is_whole(number):
            raise ValueError(f"`{name}` must be an integer. Received: {name}={number!r}")
        if number < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={number}")


def check_seed(seed: int) -> None:
    """Checks that a seed is valid for NumPy's generator, which takes 32 bits."""
    if not is_whole(seed) or not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be an integer from 0 to 2**32 - 1. Received: seed={seed!r}")


def check_first_batch(num_batches: int, first_batch: int) -> None:
    """Checks the index of the first batch of an epoch."""
    if not is_whole(first_batch) or not 0 <= first_batch <= num_batches:
        raise ValueError(
            f"`first_batch` must be between 0 and `num_batches`={num_batches}. "
            f"Received: first_batch={first_batch!r}"
        )


def check_epochs(epoch: int, epochs: int) -> None:
    """Checks that `epoch` is an integer of at least 0 and `epochs` an integer of at least 1."""
    if not is_whole(epoch) or epoch < 0:
        raise ValueError(f"`epoch` must be an integer of at least 0. Received: epoch={epoch!r}")
    check_at_least_one(epochs=epochs)


def check_id(**ids: int | None) -> None:
    """Raises `ValueError` if an argument is neither a token id nor `None`."""
    for name, each in ids.items():
        if each is not None and (not is_whole(each) or each < 0):
            raise ValueError(
                f"`{name}` must be the id of a token, an integer of at least 0. "
                f"Received: {name}={each!r}"
            )


def check_shard(batch_size: int | None, num_shards: int, shard: int) -> None:
    """Checks `num_shards` and `shard`, which select the rows of each batch.

    Args:
        batch_size: Number of rows of each batch, which `num_shards` must divide; `None` if batches
            differ in size.
        num_shards: Number of parts of each batch.
        shard: The selected part, from 0 to `num_shards - 1`.
    """
    are_whole = is_whole(num_shards) and is_whole(shard)
    if not are_whole or num_shards < 1 or not 0 <= shard < num_shards:
        raise ValueError(
            "`num_shards` must be at least 1, and `shard` from 0 to `num_shards` - 1. "
            f"Received: num_shards={num_shards}, shard={shard}"
        )
    if batch_size is not None and batch_size % num_shards:
        raise ValueError(
            f"`num_shards` must divide `batch_size`={batch_size}. "
            f"Received: num_shards={num_shards}, shard={shard}"
        )


def whole_batches(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the dataset with prefetching, and prevents `tf.distribute` from sharding it."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return untuned(dataset.with_options(options)).prefetch(2)
