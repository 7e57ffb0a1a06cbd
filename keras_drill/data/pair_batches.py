"""Batches of source-target pairs with few different shapes."""

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

LONG_PAIRS = ("drop", "cut", "end")
# Lengths are padded to one of these, so that functions are compiled for few shapes.
_LENGTHS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)


class PairBatches:
    """Batches of sentence pairs with similar lengths. Each side is padded to one of a few lengths.

    With the start token 8, the end token 9, padding 0, and the pairs `1 2 | 3` and `4 | 5 6`:

        source[0]         1  2  9        target[0]  8  3  0        labels[0]  3  9  0
        sample_weight[0]                                                      1  1  0
        source[1]         4  9  0        target[1]  8  5  6        labels[1]  5  6  9
        sample_weight[1]                                                      1  1  1

    The real batch also has a fourth column of padding: padded lengths are 4, 6, 8, ... up to 128,
    then multiples of 64, but at most `max_length`. A batch has `batch_size` pairs, or as many as
    `batch_tokens` allows. Each epoch shuffles the pairs among pairs of equal padded lengths, and
    then the order of the batches, by `seed`. The shapes of the batches are the same in every epoch.
    The same `seed` and `epoch` give the same batches on every machine. The method `dataset` can
    start at any batch of an epoch without reading the earlier batches.

    The two sides may have the same or different vocabularies, but they must have the same padding
    token. For an autoencoder, pass the same text twice.

    Args:
        source: The encoded sources. Each line has an end token.
        target: The encoded targets, the same number of lines.
        end_id: Id of the end token of the targets.
        start_id: Id of the token before each target. Defaults to `end_id`.
        batch_size: Pairs per batch. Pass either `batch_size` or `batch_tokens`.
        batch_tokens: Largest number of tokens in a batch, including padding: the number of pairs
            times the longer of the two padded lengths. A pair with more tokens forms a batch by
            itself.
        pad_id: Id of the padding token. The texts must not contain this id.
        max_length: Largest number of tokens of a side, including the end token; `None` for no
            limit.
        long_pairs: Treatment of pairs with a side longer than `max_length`. "drop" drops these
            pairs. "cut" keeps `max_length` tokens of the side. A cut source still ends in the end
            token, but a cut target does not, since the sentence does not end there. "end" is like
            "cut", but cut targets end in the end token too, which teaches models to stop in the
            middle of sentences.
        max_length_ratio: Largest ratio of the longer to the shorter side, without end tokens. Pairs
            with a larger ratio are dropped, but not pairs with an empty side; `None` for no limit.
        shuffle: Whether to shuffle in each epoch. If `False`, batches follow the attribute `order`,
            which is sorted by padded lengths, in every epoch.
        seed: Random seed for `shuffle`.
        drop_empty: Whether to drop pairs with an empty side, which has only an end token. Such
            pairs teach a model to write nothing, so drop them in training. Keep them in evaluation,
            so that every line is evaluated.

    Attributes:
        num_batches: Number of batches per epoch.
        num_targets: Number of targets per epoch, without padding.
        num_dropped: Number of dropped pairs, the sum of `num_empty`, `num_long` and `num_uneven`.
            Each pair is counted in only one of these, the first that applies.
        num_empty: Number of pairs that `drop_empty` drops.
        num_long: Number of pairs that `max_length` drops.
        num_uneven: Number of pairs that `max_length_ratio` drops.
        num_truncated: Number of pairs with a side that `max_length` cuts.
        num_truncated_sources: Number of cut sources.
        num_truncated_targets: Number of cut targets.
        order: Integers `[P]`, the line numbers (from 0) of the P pairs that are not dropped, in the
            order of the unshuffled batches.

    Raises:
        ValueError: An argument is out of range, source and target differ in their number of lines,
            or all pairs are dropped.

    Example:

    >>> from keras_drill.data import EncodedText, PairBatches
    >>> source = EncodedText(ids=[1, 2, 9, 4, 9], line_lengths=[3, 2])
    >>> target = EncodedText(ids=[3, 9, 5, 6, 9], line_lengths=[2, 3])
    >>> batches = PairBatches(source, target, 9, start_id=8, batch_size=2, shuffle=False)
    >>> for inputs, labels, sample_weight in batches.dataset():
    ...     print(inputs["source"].numpy().tolist(), labels.numpy().tolist())
    [[1, 2, 9, 0], [4, 9, 0, 0]] [[3, 9, 0, 0], [5, 6, 9, 0]]
    """

    def __init__(
        self,
        source: EncodedText,
        target: EncodedText,
        end_id: int,
        start_id: int | None = None,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        pad_id: int = 0,
        max_length: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_empty: bool = False,
        long_pairs: str = "drop",
        max_length_ratio: float | None = None,
    ):
        check_is("source", source, EncodedText, "an `EncodedText`")
        check_is("target", target, EncodedText, "an `EncodedText`")
        if (batch_size is None) == (batch_tokens is None):
            raise ValueError(
                "Expected either `batch_size` or `batch_tokens`, and None for the other. Received: "
                f"batch_size={batch_size}, batch_tokens={batch_tokens}"
            )
        check_at_least_one(batch_size=batch_size, batch_tokens=batch_tokens, max_length=max_length)
        check_seed(seed)
        check_id(end_id=end_id, start_id=start_id, pad_id=pad_id)
        if long_pairs not in LONG_PAIRS:
            raise ValueError(
                f"`long_pairs` must be one of {LONG_PAIRS}. Received: long_pairs={long_pairs!r}"
            )
        if max_length_ratio is not None and not max_length_ratio >= 1:
            raise ValueError(
                "`max_length_ratio` must be at least 1. "
                f"Received: max_length_ratio={max_length_ratio}"
            )
        _check_sides(source, target, pad_id)
        self.end_id = end_id
        self.start_id = end_id if start_id is None else start_id
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.pad_id = pad_id
        self.max_length = max_length
        self.shuffle = shuffle
        self.seed = seed
        self.drop_empty = drop_empty
        self.long_pairs = long_pairs
        self.max_length_ratio = max_length_ratio
        lengths = np.stack([source.line_lengths, target.line_lengths]).astype(np.int64)  # [2, L]
        self._pairs = self._kept(lengths)
        kept = lengths if max_length is None else np.minimum(lengths, max_length)
        cut = kept < lengths
        self._sides = []
        last = lengths[0], (kept if long_pairs == "cut" else lengths)[1]
        for text, whole, some, ends in zip((source, target), lengths, kept, last, strict=True):
            starts = np.cumsum(whole) - whole
            ends = text.ids[starts + ends - 1]
            self._sides.append((text.ids, starts, some, ends))
        is_cut = cut[:, self._pairs]  # [2, P]
        self.num_truncated = int(is_cut.any(axis=0).sum())
        self.num_truncated_sources, self.num_truncated_targets = is_cut.sum(axis=1).tolist()
        self.num_targets = int(self._sides[1][2][self._pairs].sum())
        self._padded = np.stack([padded_length(side[2], max_length) for side in self._sides])
        # Pairs of one shape are adjacent in every epoch, so the shapes of batches are constant.
        self.order = self._sorted(np.arange(len(self._pairs)))
        self._cuts = self._batch_ends(self._padded[:, self.order].max(axis=0))
        self.num_batches = len(self._cuts)

    def _kept(self, lengths: np.ndarray) -> np.ndarray:
        """Returns the pairs to keep and counts the dropped ones."""
        is_empty = (lengths == 1).any(axis=0) & self.drop_empty
        is_long = np.zeros_like(is_empty)
        if self.max_length is not None and self.long_pairs == "drop":
            is_long = (lengths > self.max_length).any(axis=0) & ~is_empty
        shorter, longer = np.sort(lengths - 1, axis=0)
        is_uneven = np.zeros_like(is_empty)
        if self.max_length_ratio is not None:
            is_uneven = (shorter > 0) & (longer > self.max_length_ratio * shorter)
            is_uneven &= ~is_empty & ~is_long
        self.num_empty, self.num_long, self.num_uneven = (
            int(each.sum()) for each in (is_empty, is_long, is_uneven)
        )
        kept = np.flatnonzero(~(is_empty | is_long | is_uneven))
        self.num_dropped = len(is_empty) - len(kept)
        if not len(kept):
            raise ValueError(
                "`source` and `target` must have pairs to keep, but all are dropped: of "
                f"{len(is_empty):,} pairs, {self.num_empty:,} have an empty side, "
                f"{self.num_long:,} are longer than `max_length`, and {self.num_uneven:,} have a "
                "side that is longer by more than `max_length_ratio`. Received: "
                f"max_length={self.max_length}, max_length_ratio={self.max_length_ratio}"
            )
        return kept

    def _batch_ends(self, lengths: np.ndarray) -> np.ndarray:
        """Returns the end of each batch of the ordered pairs, from the longer padded lengths."""
        if self.batch_size is not None:
            full = np.arange(self.batch_size, len(lengths) + self.batch_size, self.batch_size)
            return np.minimum(full, len(lengths))
        ends: list[int] = []
        start, longest = 0, 0
        for place, length in enumerate(lengths):
            longest = max(longest, length)
            if place > start and (place - start + 1) * longest > self.batch_tokens:
                ends.append(place)
                start, longest = place, length
        return np.array([*ends, len(lengths)])

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
        `fit`. To resume after n of m epochs, use
        `dataset(epoch=n, epochs=m - n)` with
        `fit(initial_epoch=n, epochs=m, steps_per_epoch=num_batches)`.

        Args:
            epoch: Number of the first epoch, from 0.
            first_batch: Index of the first batch in that epoch, from 0.
            epochs: Number of epochs, including the (partial) first one.
            num_shards: Number of parts into which the rows of each batch are divided. All parts
                have the same size, except that the last ones may be smaller or empty.
            shard: Index of the part to return, from 0.

        Returns:
            A `tf.data.Dataset` of known cardinality with the items
            `({"source": [B, S], "target": [B, T]}, labels [B, T], sample_weight [B, T])`, as
            `keras_drill.SequenceToSequence` expects them: B pairs, padded to S and T tokens.
            Weights are float32, all other tensors int32.
        """
        check_epochs(epoch, epochs)
        check_first_batch(self.num_batches, first_batch)
        check_shard(None, num_shards, shard)
        batches = [rows for number in range(epochs) for rows in self._batches(epoch + number)]
        batches = batches[first_batch:]
        rows = tf.RaggedTensor.from_row_lengths(
            np.concatenate([*batches, np.zeros(0, np.int64)]), [len(rows) for rows in batches]
        )
        with tf.device("CPU"):
            sides = [
                tuple(tf.constant(x) for x in (*side, padded))
                for side, padded in zip(self._sides, self._padded, strict=True)
            ]

        def batch(rows):
            source, _ = self._pad(rows, *sides[0])
            labels, filled = self._pad(rows, *sides[1])
            start = tf.fill([tf.shape(rows)[0], 1], self.start_id)
            target = tf.concat([start, labels[:, :-1]], axis=1)
            target = tf.where(filled, target, self.pad_id)
            inputs = {"source": source, "target": target}
            size = -(-tf.shape(rows)[0] // num_shards)
            return tf.nest.map_structure(
                lambda column: column[shard * size : (shard + 1) * size],
                (inputs, labels, tf.cast(filled, tf.float32)),
            )

        dataset = tf.data.Dataset.from_tensor_slices(rows)
        return whole_batches(
            dataset.map(batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        )

    def _batches(self, epoch: int) -> list[np.ndarray]:
        """Returns the pairs of each batch of an epoch."""
        if not self.shuffle:
            return np.split(self.order, self._cuts[:-1])
        # RandomState gives the same numbers in every version of NumPy.
        random = np.random.RandomState([self.seed, epoch])
        order = self._sorted(random.permutation(len(self.order)))
        batches = np.split(order, self._cuts[:-1])
        return [batches[number] for number in random.permutation(self.num_batches)]

    def _sorted(self, keys: np.ndarray) -> np.ndarray:
        """Sorts the pairs by their padded lengths, then by their keys."""
        source, target = self._padded[:, self._pairs]
        return self._pairs[np.lexsort((keys, source, target))]

    def _pad(self, rows, ids, starts, lengths, ends, padded):
        """Returns padded rows `[B, T]` of ids, and a mask of the tokens that are not padding."""
        width = tf.cast(tf.reduce_max(tf.gather(padded, rows)), tf.int64)
        lengths = tf.gather(lengths, rows)[:, None]  # [B, 1]
        steps = tf.range(width)[None]  # [1, T]
        filled = steps < lengths
        places = tf.where(filled, tf.gather(starts, rows)[:, None] + steps, 0)
        found = tf.gather(ids, places)
        found = tf.where(steps == lengths - 1, tf.gather(ends, rows)[:, None], found)
        return tf.where(filled, found, self.pad_id), filled


def _check_sides(source: EncodedText, target: EncodedText, pad_id: int) -> None:
    if len(source.line_lengths) != len(target.line_lengths):
        raise ValueError(
            "`source` and `target` must have the same number of lines. Received: "
            f"source of {len(source.line_lengths)} and target of {len(target.line_lengths)} lines"
        )
    if not len(source.line_lengths):
        raise ValueError("`source` and `target` must have at least one line. Received: no lines")
    for name, text in {"source": source, "target": target}.items():
        if (text.ids == pad_id).any():
            raise ValueError(
                f"`{name}` must not contain the padding token. Set `pad_id` to a token that does "
                f"not occur in the texts. Received: pad_id={pad_id}, which is token number "
                f"{int(np.argmax(text.ids == pad_id))} of the {name}"
            )


def padded_length(lengths, max_length: int | None = None) -> np.ndarray:
    """Returns the padded lengths of rows: the next of a few lengths, such as 4, 6, 8, ..., 128.

    Padding to few lengths limits the number of shapes for which functions are compiled.

    Args:
        lengths: Integers of any shape.
        max_length: Length of the longest possible row, an upper bound of the result.

    Example:

    >>> padded_length([1, 7, 33, 200], max_length=150).tolist()
    [4, 8, 40, 150]
    """
    lengths = np.asarray(lengths)
    steps = np.array(_LENGTHS)
    coarse = -(-lengths // 64) * 64  # beyond the table
    places = np.minimum(np.searchsorted(steps, lengths), len(steps) - 1)
    padded = np.where(lengths <= steps[-1], steps[places], coarse)
    return padded if max_length is None else np.minimum(padded, max_length)
