"""Orders the tokens of a walk and cuts them into tiles. Shape letters: see `walk`."""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_drill.fused_loss.inputs import (
    StoredTeacher,
    WalkInputs,
    WalkOptions,
    tile_count,
    tokens_per_tile,
)
from keras_drill.fused_loss.label_shard import LabelShard
from keras_drill.fused_loss.tiling import padded_tokens
from keras_drill.ops.graph import put_rows
from keras_drill.types import Tensor


class Tile(NamedTuple):
    """The tokens of one tile. Tokens of weight 0 are ignored.

    Attributes:
        hidden: `[R, d]`, the contexts.
        hidden_terms: The score's terms of `hidden`, a tuple of `[R, 1]`.
        log_priors: `[T, K]`, or `None` if K = 1.
        columns: `[R, S]`, columns of the target, relative to the first label of this device.
        column_mask: `[R, S]`, or `None`.
        targets: `[T]`, the target words.
        weights: `[T]`.
        num_contexts: K.
        teacher: The teacher's `Tile` or `StoredTeacher` of these tokens, or `None`.
    """

    hidden: Tensor
    hidden_terms: tuple
    log_priors: Tensor | None
    columns: Tensor
    column_mask: Tensor | None
    targets: Tensor
    weights: Tensor
    num_contexts: int
    teacher: Any = None


class TokenTiles:
    """All tokens of a walk. Tokens with a weight come first, and the last tile is padded.

    Tokens of weight 0 come last, and tiles with only such tokens are not computed.

    Args:
        inputs: `WalkInputs`.
        options: `WalkOptions`.
        weights: `[N]`, or `None` for 1.
        with_gradients: Whether the functions of tiles are compiled with gradients.
        shard: The `LabelShard` of the walk's labels.

    Attributes:
        size: T, the number of tokens per tile.
        most_tokens: Upper bound of T, an integer.
        padded: Number of tokens of all tiles, with padding.
        num_tiles: Number of tiles to compute.
        scale: Factor by which the weights of tiles are divided, or `None` for 1.
    """

    def __init__(
        self,
        inputs: WalkInputs,
        options: WalkOptions,
        weights,
        with_gradients: bool,
        shard: LabelShard,
    ):
        self._options = options
        num_tokens, num_contexts, _ = inputs.contexts.shape
        num_labels = inputs.labels.shape[0]
        if num_tokens is None:
            num_tokens = ops.shape(inputs.contexts)[0]
        self._num_tokens = num_tokens
        self.num_tiles = tile_count(num_tokens, num_contexts, num_labels, options)
        self.most_tokens = tokens_per_tile(num_contexts, num_labels, options)
        self.size = self._equal_size(with_gradients)
        self.padded = self.num_tiles * self.size

        accumulator = options.accumulator_dtype
        self.scale = self._order = None
        num_counted = num_tokens
        if weights is None:
            weights = ops.ones((num_tokens,), accumulator)
        else:
            weights = ops.cast(weights, accumulator)
            # Weights near 1 keep hidden * weight in the range of float16. `scale` is applied at the
            # end.
            scale = ops.max(ops.abs(weights), initial=0.0)
            self.scale = ops.where(scale > 0, scale, ops.ones_like(scale))
            weights = weights / self.scale
            self._order = ops.argsort(ops.cast(weights == 0, "int32"))
            num_counted = ops.sum(ops.cast(weights != 0, "int32"))
            size = ops.maximum(self.size, 1)
            # Devices that communicate compute equally many tiles, even if some have fewer tokens.
            self.num_tiles = shard.most_tiles((num_counted + size - 1) // size)
        self._counted = counted = ops.arange(self.padded) < num_counted

        self._shard = shard
        self._weights = _clear(self._arrange(weights), counted)
        self._inputs = self._arrange_inputs(inputs, options)
        self._teacher_options: Any = options.distillation and options.distillation.teacher
        self._teacher = self._arrange_teacher(inputs.teacher)

    def _arrange_inputs(self, inputs: WalkInputs, options: WalkOptions) -> WalkInputs:
        """Reorders and pads the tensors of tokens. Contexts are cleared later, in each tile."""
        counted, accumulator = self._counted, options.accumulator_dtype
        columns = _clear(self._arrange(inputs.columns, "int32"), counted)
        targets = inputs.columns[:, 0] if inputs.targets is None else inputs.targets
        column_mask = self._arrange(inputs.column_mask)
        if column_mask is not None:  # ignored tokens need a valid column
            column_mask = ops.logical_or(column_mask, ~counted[:, None])
        return inputs._replace(
            contexts=self._arrange(inputs.contexts, options.compute_dtype),
            log_priors=_clear(self._arrange(inputs.log_priors, accumulator), counted),
            columns=columns if self._shard.axis is None else columns - self._shard.first,
            column_mask=column_mask,
            targets=_clear(self._arrange(targets, "int32"), counted),
        )

    def _arrange_teacher(self, teacher):
        if isinstance(teacher, StoredTeacher):
            return StoredTeacher(*(_clear(self._arrange(x), self._counted) for x in teacher))
        return teacher and self._arrange_inputs(teacher, self._teacher_options)

    def _equal_size(self, with_gradients: bool):
        """Chooses T so that little padding is needed."""
        if isinstance(self._num_tokens, int):
            size = math.ceil(self._num_tokens / self.num_tiles)
            self.most_tokens = size if self._options.tile_size else padded_tokens(size)
            return self.most_tokens
        size = (self._num_tokens + self.num_tiles - 1) // self.num_tiles
        if with_gradients:  # few different sizes, since each is compiled separately
            size = ops.minimum(_coarse(size), self.most_tokens)
        return size

    def tile(self, index) -> Tile:
        """Returns the tile of an index, which may be a tensor."""
        tile, teacher = self._tile(self._inputs, self._options, index), self._teacher
        if isinstance(teacher, StoredTeacher):
            return tile._replace(teacher=StoredTeacher(*(self._rows(x, index) for x in teacher)))
        if teacher is None:
            return tile
        return tile._replace(teacher=self._tile(teacher, self._teacher_options, index))

    def _tile(self, inputs: WalkInputs, options: WalkOptions, index) -> Tile:
        num_contexts, width = inputs.contexts.shape[1:]

        def rows(x):
            return self._rows(x, index)

        def by_context(x):
            return None if x is None else ops.repeat(x, num_contexts, axis=0)

        contexts = _clear(rows(inputs.contexts), rows(self._counted))
        hidden = ops.reshape(contexts, (-1, width))
        return Tile(
            hidden,
            tuple(options.score.hidden_terms(hidden)),
            rows(inputs.log_priors),
            by_context(rows(inputs.columns)),
            by_context(rows(inputs.column_mask)),
            rows(inputs.targets),
            rows(self._weights),
            num_contexts,
        )

    def _rows(self, x, index):
        """Returns the rows of a reordered tensor that belong to a tile."""
        if x is None:
            return None
        tail = x.shape[1:]
        return ops.slice(x, [index * self.size] + [0] * len(tail), [self.size, *tail])

    def put(self, whole, index, of_tile):
        """Writes the result of a tile `[T, ...]` to its rows of `whole` `[padded, ...]`."""
        return put_rows(whole, index * self.size, ops.cast(of_tile, whole.dtype))

    def restore(self, whole, only_counted: bool = False):
        """Restores the original order of tokens, `[N, ...]`, of a tensor `[padded, ...]`.

        Args:
            whole: The tensor, or `None`.
            only_counted: Whether to set the values of ignored tokens to 0.
        """
        if whole is None:
            return None
        if only_counted:
            counted = ops.cast(self._counted, whole.dtype)
            whole = whole * ops.reshape(counted, (-1,) + (1,) * (len(whole.shape) - 1))
        whole = whole[: self._num_tokens]
        return whole if self._order is None else ops.take(whole, ops.argsort(self._order), axis=0)

    def _arrange(self, x, dtype=None):
        """Moves ignored tokens to the end and pads the last tile."""
        if x is None:
            return None
        x = x if dtype is None else ops.cast(x, dtype)
        x = x if self._order is None else ops.take(x, self._order, axis=0)
        pads = [(0, self.padded - self._num_tokens)] + [(0, 0)] * (len(x.shape) - 1)
        return ops.pad(x, pads)


def _clear(x, counted):
    """Sets the values of ignored tokens to 0."""
    if x is None:
        return None
    counted = ops.reshape(counted, (-1,) + (1,) * (len(x.shape) - 1))
    return ops.where(counted, x, ops.zeros_like(x))


def _coarse(size):
    """Rounds `size` up to an integer with four significant bits, by at most an eighth."""
    octave = ops.floor(ops.log2(ops.cast(ops.maximum(size, 1), "float32")))
    step = ops.left_shift(1, ops.cast(ops.maximum(octave - 3, 0), "int32"))
    return (size + step - 1) // step * step
