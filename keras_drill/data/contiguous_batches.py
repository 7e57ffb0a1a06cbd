"""Windows of one long text, for recurrent models that carry their state from batch to batch."""

from collections.abc import Callable

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
from keras_drill.data.checks import is_whole
from keras_drill.data.encoded_text import EncodedText, as_ids
from keras_drill.data.streamed_text import StreamedText
from keras_drill.optimizers.window_lengths import count_windows, draw_window_lengths


class ContiguousBatches:
    """Batches of consecutive windows of one long text, for models that carry their state.

    The `N` ids are divided into `batch_size` rows of equal length, and each row is cut into
    windows. Batch b contains window b of every row. So the final state of a recurrent model after a
    batch is the right initial state for the next batch. Each target is the next token, and each
    token is a target exactly once. With `batch_size=2`, `sequence_length=3`, `first_token=0` and
    the ids 1 2 3 ... 11:

        batch               0            1
        tokens[0]       0  1  2        3  4
        targets[0]      1  2  3        4  5
        tokens[1]       5  6  7        8  9
        targets[1]      6  7  8        9 10

    The first row begins with `first_token`, the other rows with the last token of the row above.
    The last `N % batch_size` ids are dropped, here 11. The last window may be shorter than the
    others. With `padding=True`, no id is dropped and all windows have the same length: positions
    after the end of the text have `pad_id` and `sample_weight` 0 (`weight` in the tables):

        batch               0            1
        tokens[0]       0  1  2        3  4  5
        targets[0]      1  2  3        4  5  6
        weight[0]       1  1  1        1  1  1
        tokens[1]       6  7  8        9 10 11
        targets[1]      7  8  9       10 11  0
        weight[1]       1  1  1        1  1  0

    Use `min_context` for evaluation: each row first reads the `min_context` tokens before its
    targets, with weight 0 (fewer at the beginning of the text). Predictions then hardly depend on
    `batch_size`. If the text has at most `min_context` tokens, predictions do not depend on
    `batch_size` at all. With `min_context=3`, the second row is:

        batch               0            1            2
        tokens[1]       3  4  5        6  7  8        9 10 11
        targets[1]      4  5  6        7  8  9       10 11  0
        weight[1]       0  0  0        1  1  1        1  1  0

    With `variable_length=True`, each epoch draws new lengths of windows from normal distributions,
    as for AWD-LSTM. The mean is `sequence_length` with probability 0.95, else half of this number.
    The standard deviation is 5, and the least length is 5 tokens. The drawn lengths are changed by
    as little as possible so that their sum is the length of a row. All epochs have the same number
    of batches, so that the progress bar and learning rate schedules stay correct.

    Without `padding` or with `variable_length=True`, the length of a window is not part of the
    dataset's static shape, so TensorFlow traces once for all lengths. XLA and JAX compile once per
    length.

    The same `seed` and `epoch` give the same batches on every machine. The method `dataset` can
    start at any batch of an epoch without reading the earlier batches.

    For a text that is larger than memory, use a `StreamedText`. The method `dataset` then reads
    only the rows of its `shard` from disk, and keeps an eighth of a megabyte per row in memory.

    Args:
        ids: Int array `[N]`, an `EncodedText`, or a `StreamedText`.
        batch_size: Number of rows of each batch.
        sequence_length: Length of the windows.
        variable_length: Whether to draw the lengths of the windows at random.
        padding: Whether to pad the last rows and the last window with weight 0. Padding keeps every
            token and makes all shapes static, except for lengths that are drawn.
        first_token: Id of the token before the first id. `None` uses the last of the `ids`, which
            is the end token in an `EncodedText`.
        pad_id: Id of the padding token.
        seed: Random seed for `variable_length`.
        min_context: Least number of tokens before each target, as far as the text has them.
            Requires `padding`.

    Attributes:
        num_batches: Number of batches per epoch.
        num_targets: Number of targets per epoch, without padding.

    Example:

    >>> from keras_drill.data import ContiguousBatches
    >>> ids = np.arange(1, 12)
    >>> batches = ContiguousBatches(ids, batch_size=2, sequence_length=3, first_token=0)
    >>> for tokens, targets in batches.dataset():
    ...     print(tokens.numpy().tolist(), targets.numpy().tolist())
    [[0, 1, 2], [5, 6, 7]] [[1, 2, 3], [6, 7, 8]]
    [[3, 4], [8, 9]] [[4, 5], [9, 10]]
    >>> for tokens, _ in batches.dataset(epoch=7, first_batch=1):
    ...     print(tokens.numpy().tolist())
    [[3, 4], [8, 9]]

    References:

    - [Merity et al., 2018](https://arxiv.org/abs/1708.02182) (variable length, section 5)
    """

    def __init__(
        self,
        ids: np.ndarray | EncodedText | StreamedText,
        batch_size: int,
        sequence_length: int,
        variable_length: bool = False,
        padding: bool = False,
        first_token: int | None = None,
        pad_id: int = 0,
        seed: int = 0,
        min_context: int = 0,
    ):
        text = ids if isinstance(ids, StreamedText) else as_ids(ids)
        check_at_least_one(batch_size=batch_size, sequence_length=sequence_length)
        check_seed(seed)
        check_id(first_token=first_token, pad_id=pad_id)
        if not is_whole(min_context) or min_context < 0 or (min_context and not padding):
            raise ValueError(
                "`min_context` must be an integer of at least 0, and must be 0 if `padding` is "
                "False. "
                f"Received: min_context={min_context!r}, padding={padding}"
            )
        needed = 1 if padding else batch_size * sequence_length
        if len(text) < needed:
            raise ValueError(
                f"The text has {len(text)} tokens, fewer than one batch of `batch_size` × "
                f"`sequence_length` = {batch_size} × {sequence_length} = {needed}: lower "
                "`batch_size` (or `sequence_length`), or give more text. "
                f"Received: batch_size={batch_size}, sequence_length={sequence_length}"
            )
        self.batch_size = batch_size
        self.sequence_length = sequence_length
        self.variable_length = variable_length
        self.padding = padding
        if first_token is None:
            last = len(text) - 1
            first_token = int(
                text.read(last, last + 1)[0] if isinstance(text, StreamedText) else text[last]
            )
        self.first_token = first_token
        self.pad_id = pad_id
        self.seed = seed
        self.num_targets = len(text) if padding else len(text) - len(text) % batch_size
        multiple = sequence_length if padding and not variable_length else 1
        steps = -(-self.num_targets // (batch_size * multiple)) * multiple  # of a row's targets
        context = -(-min(min_context, (batch_size - 1) * steps) // multiple) * multiple
        self._firsts = np.arange(batch_size) * steps  # [B], places in the text
        self._begins = np.maximum(self._firsts - context, 0)  # [B]
        self._stops = np.minimum(self._firsts + steps, self.num_targets)
        self._steps = steps + context
        if variable_length:
            self.num_batches = count_windows(self._steps, sequence_length)
        else:
            self.num_batches = -(-self._steps // sequence_length)
        self._text = text if isinstance(text, StreamedText) else None
        if isinstance(text, np.ndarray):
            with tf.device("CPU"):
                self._rows = tf.constant(self._layout(text))  # [B, steps + 1]

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
        `fit`. Otherwise `fit` would read the first epoch again in
        each epoch. For several workers, use `keras_drill.distribute.distribute_batches`, or
        `strategy.distribute_datasets_from_function(lambda context: batches.dataset(
        num_shards=context.num_input_pipelines, shard=context.input_pipeline_id))`, so that each
        worker reads its own rows.

        Args:
            epoch: Number of the first epoch, from 0.
            first_batch: Index of the first batch in that epoch, from 0.
            epochs: Number of epochs, including the (partial) first one.
            num_shards: Number of parts into which the rows of each batch are divided, a divisor of
                `batch_size`.
            shard: Index of the part to return, from 0.

        Returns:
            A `tf.data.Dataset` of known cardinality. Its items are `(tokens, targets)`, int32
            `[B, T]` each: B rows of T tokens. With `padding`, the items are
            `(tokens, targets, sample_weight)`, with float32 weights `[B, T]`.
        """
        check_epochs(epoch, epochs)
        check_first_batch(self.num_batches, first_batch)
        check_shard(self.batch_size, num_shards, shard)
        starts = np.concatenate([self._starts(epoch + number) for number in range(epochs)])
        starts = starts[first_batch:]
        size = self.batch_size // num_shards
        window = self._windows(shard * size, size)
        first, end = self._counted(shard * size, size)
        spec = self._element_spec(size)

        def batch(start_stop: tf.Tensor) -> tuple[tf.Tensor, ...]:
            start, stop = start_stop[0], start_stop[1]
            read = window(start, stop)  # [rows, T + 1]
            columns: tuple = (read[:, :-1], read[:, 1:])
            if self.padding:
                steps = tf.range(start, stop)  # [T]
                columns += (tf.cast((steps >= first) & (steps < end), tf.float32),)
            return tuple(
                tf.ensure_shape(column, one.shape)
                for column, one in zip(columns, spec, strict=True)
            )

        # Distributing batches over workers would separate the windows of a row.
        return whole_batches(tf.data.Dataset.from_tensor_slices(starts).map(batch))

    def lengths(self, epoch: int = 0) -> np.ndarray:
        """Returns the window lengths of an epoch, integers `[num_batches]`.

        `keras_drill.optimizers.SequenceLengthSchedule` scales the learning rate by these lengths.
        """
        return np.diff(self._starts(epoch), axis=1)[:, 0]

    def _element_spec(self, num_rows: int) -> tuple[tf.TensorSpec, ...]:
        static = self.padding and not self.variable_length
        shape = [num_rows, self.sequence_length if static else None]
        spec = (tf.TensorSpec(shape, tf.int32), tf.TensorSpec(shape, tf.int32))
        return spec + (tf.TensorSpec(shape, tf.float32),) if self.padding else spec

    def _layout(self, ids: np.ndarray) -> np.ndarray:
        """Returns rows `[B, steps + 1]`, each beginning with the token before the row."""
        text = np.full(self._begins[-1] + self._steps + 1, self.pad_id, np.int32)
        text[0] = self.first_token
        text[1 : self.num_targets + 1] = ids[: self.num_targets]
        return text[self._begins[:, None] + np.arange(self._steps + 1)]

    def _windows(self, first_row: int, num_rows: int) -> Callable:
        """Returns a function that returns the rows of a window, `[rows, T + 1]`.

        Each row begins with the token before the window.
        """
        if self._text is None:
            rows = self._rows[first_row : first_row + num_rows]
            return lambda start, stop: rows[:, start : stop + 1]
        read = self._text.reader(2 * num_rows)

        def window(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
            width = int(stop) - int(start) + 1
            found = np.full((num_rows, width), self.pad_id, np.int32)
            for row in range(num_rows):
                place = int(self._begins[first_row + row]) + int(start) - 1
                begun = max(place, 0)  # the first row begins before the text
                ids = read(min(begun, self.num_targets), min(place + width, self.num_targets))
                found[row, begun - place : begun - place + len(ids)] = ids
                found[row, : begun - place] = self.first_token
            return found

        return lambda start, stop: tf.ensure_shape(
            tf.numpy_function(window, [start, stop], tf.int32), [num_rows, None]
        )

    def _counted(self, first_row: int, num_rows: int) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the first step of each row with weight 1, and the end of these steps, exclusive.

        Both are `[rows, 1]`.
        """
        rows = slice(first_row, first_row + num_rows)
        first, stop = (
            np.maximum(places - self._begins, 0)[rows, None]
            for places in (self._firsts, self._stops)
        )
        return tf.constant(first, tf.int32), tf.constant(stop, tf.int32)

    def _starts(self, epoch: int) -> np.ndarray:
        """Returns start and end of each window of an epoch, `[num_batches, 2]`."""
        if self.variable_length:
            stops = np.cumsum(
                draw_window_lengths(self._steps, self.sequence_length, self.seed, epoch)
            )
        else:
            stops = np.minimum(
                np.arange(1, self.num_batches + 1) * self.sequence_length, self._steps
            )
        return np.stack([np.concatenate([[0], stops[:-1]]), stops], axis=1).astype(np.int32)
