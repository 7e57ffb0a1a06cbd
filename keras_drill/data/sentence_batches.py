"""Padded batches of independent sentences."""

import numpy as np
import tensorflow as tf

from keras_drill.data.batches import (
    check_at_least_one,
    check_epochs,
    check_first_batch,
    check_id,
    check_seed,
    check_shard,
    whole_batches,
)
from keras_drill.data.checks import check_is
from keras_drill.data.encoded_text import EncodedText


class SentenceBatches:
    """Batches of independent sentences (lines of the text), padded to the longest of the batch.

    With the start token 8, the end token 9, padding 0, and the sentences `1 2 3` and `4`:

        tokens[0]         8  1  2  3
        targets[0]        1  2  3  9
        sample_weight[0]  1  1  1  1
        tokens[1]         8  4  0  0
        targets[1]        4  9  0  0
        sample_weight[1]  1  1  0  0

    Empty lines are dropped. With `shuffle=True` each epoch has a different order:

    1. The sentences are shuffled.
    2. Pools of `bucket_batches` batches are sorted by length. The sentences of a batch then have
       similar lengths and need little padding.
    3. The batches are shuffled.

    The same `seed` and `epoch` give the same batches on every machine. The method `dataset` can
    start at any batch of an epoch without reading the earlier batches.

    Args:
        text: The encoded text, one sentence per line.
        batch_size: Number of sentences per batch.
        end_id: Id of the end token, with which each line of `text` ends.
        start_id: Id of the token before each sentence. Defaults to `end_id`.
        pad_id: Id of the padding token.
        max_length: Largest number of targets of a sentence, including the end token; `None` for no
            limit. Longer sentences are cut at their end and lose the end token.
        length_multiple: Sentences are padded to a multiple of this number of tokens, so that
            functions are compiled for fewer shapes. If equal to `max_length`, all batches have the
            same length.
        shuffle: Whether to shuffle sentences and batches. If `False`, sentences are in the order of
            the text.
        bucket_batches: Number of batches in a pool that is sorted by length; 1 for no sorting.
            Without `shuffle`, nothing is sorted.
        fill_last_batch: Whether the batch of the remaining sentences, fewer than `batch_size`, is
            padded to `batch_size` rows with empty sentences of weight 0. If `False`, this batch has
            fewer rows. With `shuffle`, this batch may be anywhere in the epoch.
        seed: Seed of the shuffling.

    Attributes:
        num_batches: Number of batches per epoch.
        num_targets: Number of targets per epoch, without padding.
        num_truncated: Number of sentences that `max_length` cuts.

    Example:

    >>> from keras_drill.data import EncodedText, SentenceBatches
    >>> text = EncodedText(ids=[1, 2, 3, 9, 4, 9], line_lengths=[4, 2])
    >>> batches = SentenceBatches(text, batch_size=2, end_id=9, start_id=8, shuffle=False)
    >>> for tokens, targets, sample_weight in batches.dataset():
    ...     print(tokens.numpy().tolist(), targets.numpy().tolist())
    [[8, 1, 2, 3], [8, 4, 0, 0]] [[1, 2, 3, 9], [4, 9, 0, 0]]
    """

    def __init__(
        self,
        text: EncodedText,
        batch_size: int,
        end_id: int,
        start_id: int | None = None,
        pad_id: int = 0,
        max_length: int | None = None,
        length_multiple: int = 1,
        shuffle: bool = True,
        bucket_batches: int = 50,
        fill_last_batch: bool = False,
        seed: int = 0,
    ):
        check_at_least_one(
            batch_size=batch_size,
            max_length=max_length,
            length_multiple=length_multiple,
            bucket_batches=bucket_batches,
        )
        check_seed(seed)
        check_id(end_id=end_id, start_id=start_id, pad_id=pad_id)
        check_is("text", text, EncodedText, "an `EncodedText`")
        self.batch_size = batch_size
        self.end_id = end_id
        self.start_id = start_id
        self.pad_id = pad_id
        self.max_length = max_length
        self.length_multiple = length_multiple
        self.shuffle = shuffle
        self.bucket_batches = bucket_batches
        self.fill_last_batch = fill_last_batch
        self.seed = seed
        starts = np.cumsum(text.line_lengths, dtype=np.int64) - text.line_lengths
        kept = text.line_lengths > 1
        self._starts = starts[kept]  # [S]
        lengths = text.line_lengths[kept].astype(np.int64)  # [S]
        if len(lengths) < (1 if fill_last_batch else batch_size):
            raise ValueError(
                f"The text has {len(lengths)} sentences (lines with words), fewer than one batch "
                f"of {batch_size}: lower `batch_size`, or give more text. "
                f"Received: batch_size={batch_size}"
            )
        cut = lengths if max_length is None else np.minimum(lengths, max_length)
        self._lengths = cut
        self.num_truncated = int((cut < lengths).sum())
        self.num_targets = int(cut.sum())
        self.num_batches = -(-len(cut) // batch_size)
        with tf.device("CPU"):
            self._ids = tf.constant(text.ids)  # [N]

    def dataset(
        self,
        epoch: int = 0,
        first_batch: int = 0,
        epochs: int = 1,
        num_shards: int = 1,
        shard: int = 0,
    ) -> tf.data.Dataset:
        """Returns a dataset with the batches of one or several epochs.

        To resume, pass as `epoch` and `first_batch` the epoch and the number of its batches that
        are done, and train the rest of this epoch by a `fit` of its own. To train several whole
        epochs in one `fit`, pass `epochs` to this method and `steps_per_epoch=num_batches` to
        `fit`.

        Args:
            epoch: Number of the first epoch, from 0.
            first_batch: Index of the first batch in that epoch, from 0.
            epochs: Number of epochs, including the (partial) first one.
            num_shards: Number of parts into which the rows of each batch are divided, a divisor of
                `batch_size`. In a batch with fewer rows, the last parts may be smaller or empty.
            shard: Index of the part to return, from 0.

        Returns:
            A `tf.data.Dataset` of known cardinality with the items
            `(tokens, targets, sample_weight)`, each `[B, T]`: B sentences of up to T tokens. Tokens
            and targets are int32, weights float32.
        """
        check_epochs(epoch, epochs)
        check_first_batch(self.num_batches, first_batch)
        check_shard(self.batch_size, num_shards, shard)
        order = np.concatenate([self._order(epoch + number) for number in range(epochs)])
        order = order[first_batch:]  # [batches, B]
        size = self.batch_size // num_shards
        spec = self._element_spec(num_shards)
        starts, lengths = tf.constant(self._starts), tf.constant(self._lengths)

        def batch(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
            columns = self._batch(rows, starts, lengths)
            columns = tuple(column[shard * size : (shard + 1) * size] for column in columns)
            return tuple(
                tf.ensure_shape(column, one.shape)
                for column, one in zip(columns, spec, strict=True)
            )

        dataset = tf.data.Dataset.from_tensor_slices(order)
        return whole_batches(
            dataset.map(batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        )

    def _element_spec(self, num_shards: int) -> tuple[tf.TensorSpec, ...]:
        full = self.fill_last_batch or len(self._lengths) % self.batch_size == 0
        static = self.max_length is not None and self.length_multiple % self.max_length == 0
        shape = [
            self.batch_size // num_shards if full else None,
            self.length_multiple if static else None,
        ]
        return (
            tf.TensorSpec(shape, tf.int32),
            tf.TensorSpec(shape, tf.int32),
            tf.TensorSpec(shape, tf.float32),
        )

    def _order(self, epoch: int) -> np.ndarray:
        """Returns the sentences of each batch of an epoch, `[num_batches, B]`; -1 for padding."""
        order = np.full(self.num_batches * self.batch_size, -1)
        order[: len(self._lengths)] = np.arange(len(self._lengths))
        if not self.shuffle:
            return order.reshape(self.num_batches, self.batch_size)
        # RandomState gives the same numbers in every version of NumPy.
        random = np.random.RandomState([self.seed, epoch])
        random.shuffle(order[: len(self._lengths)])
        pool = self.bucket_batches * self.batch_size
        if self.bucket_batches > 1:
            for start in range(0, len(self._lengths), pool):
                some = order[start : start + pool]
                some = some[some >= 0]
                order[start : start + len(some)] = some[
                    np.argsort(self._lengths[some], kind="stable")
                ]
        batches = order.reshape(self.num_batches, self.batch_size)
        return batches[random.permutation(self.num_batches)]

    def _batch(
        self, rows: tf.Tensor, starts: tf.Tensor, lengths: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        if not self.fill_last_batch:
            rows = tf.boolean_mask(rows, rows >= 0)
        there = rows >= 0  # [B]
        rows = tf.maximum(rows, 0)
        starts = tf.gather(starts, rows)  # [B]
        lengths = tf.where(there, tf.gather(lengths, rows), 0)  # [B]
        longest = tf.reduce_max(lengths)
        longest = -(-longest // self.length_multiple) * self.length_multiple
        steps = tf.range(longest)[None]  # [1, T]
        filled = steps < lengths[:, None]  # [B, T]
        places = tf.where(filled, starts[:, None] + steps, 0)
        targets = tf.where(filled, tf.gather(self._ids, places), self.pad_id)  # [B, T]
        start_id = self.end_id if self.start_id is None else self.start_id
        start = tf.fill([tf.shape(rows)[0], 1], start_id)
        tokens = tf.concat([start, targets[:, :-1]], axis=1)  # [B, T]
        tokens = tf.where(filled, tokens, self.pad_id)
        return tokens, targets, tf.cast(filled, tf.float32)
