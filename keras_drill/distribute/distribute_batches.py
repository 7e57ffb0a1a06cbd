"""Distributes batches to devices, so that batches do not depend on the number of devices."""

from typing import Any

import tensorflow as tf


def distribute_batches(
    batches: Any, strategy: tf.distribute.Strategy, epoch: int = 0, first_batch: int = 0
) -> Any:
    """Makes a dataset for `fit` under a strategy: each replica gets its rows of the global batches.

    The dataset has the batches of one epoch, from `first_batch`. Make a dataset and call `fit` for
    each epoch.

    The rows of a global batch are split into one part for each replica, in order. So batch k of an
    epoch does not depend on the number of workers, unlike with `Dataset.shard` or the sharding of
    `tf.distribute`. A training run can resume at `first_batch` with another number of workers, and
    no row is read twice or skipped.

    Args:
        batches: `ContiguousBatches`, `SentenceBatches` or `PairBatches` of `keras_drill.data`, or
            another object with the method `dataset(epoch, first_batch, num_shards=, shard=)`. The
            method returns a `tf.data.Dataset` of part number `shard` (from 0) of every batch. The
            number of replicas must divide the `batch_size` of `ContiguousBatches` and
            `SentenceBatches`; for `PairBatches`, any number is allowed.
        strategy: The strategy under which the model was created.
        epoch: Number of the epoch, from 0.
        first_batch: Index of the first batch in that epoch, from 0.

    Returns:
        A `tf.data.Dataset` for a single replica, else a `tf.distribute.DistributedDataset`. In
        `fit`, set `steps_per_epoch=batches.num_batches - first_batch`, and for validation data
        `validation_steps` in the same way. Otherwise Keras, which does not know the length of a
        distributed dataset, runs one more step without rows to find its end.

    Example:

    >>> batches = keras_drill.data.ContiguousBatches(np.arange(12), 2, 3)
    >>> strategy = keras_drill.distribute.strategy("none")
    >>> dataset = keras_drill.distribute.distribute_batches(batches, strategy, first_batch=1)
    >>> [tokens.shape.as_list() for tokens, _ in dataset]
    [[2, 3]]
    """
    number = strategy.num_replicas_in_sync
    if number == 1:
        return batches.dataset(epoch, first_batch)

    def parts(context: tf.distribute.InputContext) -> tf.data.Dataset:
        here = number // context.num_input_pipelines
        first = context.input_pipeline_id * here
        shards = [
            batches.dataset(epoch, first_batch, num_shards=number, shard=first + i)
            for i in range(here)
        ]
        if here == 1:
            return shards[0]
        # Each step takes one part for every replica of the worker, in this order.
        turns = tf.data.Dataset.range(here).repeat()
        return tf.data.Dataset.choose_from_datasets(shards, turns)

    return strategy.distribute_datasets_from_function(parts)
