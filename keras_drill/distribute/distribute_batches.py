"""The same batches whatever the number of devices."""

from typing import Any

import tensorflow as tf


def distribute_batches(
    batches: Any, strategy: tf.distribute.Strategy, epoch: int = 0, first_batch: int = 0
) -> Any:
    """Data for `fit` on global batches under a strategy: each replica gets its rows.

    Batch k of an epoch is the same whatever the number of workers, split into as many parts as
    there are replicas, the first rows to the first replica; so a run can resume at `first_batch`
    with another number of workers. Nothing is read twice or skipped. `Dataset.shard` and the
    sharding of `tf.distribute` itself make other batches for every number of workers.

    Args:
        batches: `ContiguousBatches`, `SentenceBatches`, `PairBatches`, or whatever has their
            `dataset(epoch, first_batch, num_shards=, shard=)`.
        strategy: The strategy under which the model was made.
        epoch: As in `batches.dataset`.
        first_batch: As in `batches.dataset`.

    Returns:
        A dataset, or a `tf.distribute.DistributedDataset`. Set its length in `fit` by
        `steps_per_epoch=batches.num_batches - first_batch`, and likewise `validation_steps`: Keras
        does not know that of the latter, and makes one more step, on no rows, to find its end.

    Example:

    >>> from keras_drill.data import ContiguousBatches
    >>> batches = ContiguousBatches(np.arange(12), 2, 3)
    >>> dataset = distribute_batches(batches, tf.distribute.get_strategy(), 0, 1)
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
