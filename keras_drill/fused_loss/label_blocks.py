"""The labels of a walk, by blocks: what is made of a tile is made for one block after another."""

from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.label_shard import LabelShard
from keras_drill.fused_loss.matrix_accumulator import MatrixSum
from keras_drill.fused_loss.tiling import labels_per_block
from keras_drill.types import Tensor


class LabelBlock(NamedTuple):
    """Labels that follow one another.

    Attributes:
        start: Number of the first.
        index: `[B]`, 0, 1, 2 and so on, for compiled functions to be given: on CPUs XLA does not
            vectorize exponentials beside a counter.
        labels: `[B, d]`, in the compute dtype.
        bias: `[B]`, or `None`.
        terms: What the score needs of the labels, a tuple of `[B]`.
        exists: `[B]`, which of them are labels, or `None` for all.
    """

    start: int
    index: Tensor
    labels: Tensor
    bias: Tensor | None
    terms: tuple
    exists: Tensor | None

    @property
    def size(self) -> int:
        return self.labels.shape[0]

    @property
    def real_labels(self) -> Tensor:
        """`[B, d]`, with zeros in rows that are no labels."""
        if self.exists is None:
            return self.labels
        return ops.where(self.exists[:, None], self.labels, ops.zeros_like(self.labels))

    @property
    def stop(self) -> int:
        return self.start + self.size


class Labels(NamedTuple):
    """All labels that a device has, and the blocks that they are cut into.

    Attributes:
        whole: `[M, d]`, in the compute dtype.
        bias: `[M]`, or `None`.
        blocks: List of `LabelBlock`.
        shard: `LabelShard`, which of all labels they are.
    """

    whole: Tensor
    bias: Tensor | None
    blocks: list[LabelBlock]
    shard: LabelShard

    @property
    def num_labels(self) -> int:
        """Labels of all devices."""
        return self.shard.num_labels

    @property
    def has_bias(self) -> bool:
        return self.bias is not None


def cut_labels(
    inputs: WalkInputs, options: WalkOptions, rows_per_tile: int, shard: LabelShard
) -> Labels:
    """The labels of a walk over tiles of at most `rows_per_tile` rows."""
    labels = ops.cast(inputs.labels, options.compute_dtype)
    bias = inputs.bias
    bias = None if bias is None else ops.cast(bias, options.accumulator_dtype)
    parameters = [ops.cast(p, options.accumulator_dtype) for p in inputs.score_parameters]
    blocks = []
    for block in block_slices(labels.shape[0], max(labels.shape[1], rows_per_tile)):
        terms = options.score.label_terms(labels[block], [p[block] for p in parameters])
        block_bias = None if bias is None else bias[block]
        index = ops.arange(block.stop - block.start, dtype="int32")
        exists = shard.exists(block.start, block.stop - block.start)
        blocks.append(
            LabelBlock(block.start, index, labels[block], block_bias, tuple(terms), exists)
        )
    return Labels(labels, bias, blocks, shard)


def block_slices(num_labels: int, width: int) -> list[slice]:
    """Slices of the labels, of which each takes `width` floats."""
    size = labels_per_block(num_labels, width, MatrixSum.rows_per_chunk)
    return [slice(start, min(start + size, num_labels)) for start in range(0, num_labels, size)]


def select(selected: list, products, columns, block: LabelBlock) -> list:
    """Products, terms and bias (or None) of every row's columns, `[R, S]` each, block by block.

    Args:
        selected: What came of the blocks before; empty for the first.
        products: `[R, B]`.
        columns: `[R, S]`.
        block: The `LabelBlock` of the products.
    """
    here = columns - block.start
    inside = ops.logical_and(here >= 0, here < block.size)
    here = ops.clip(here, 0, block.size - 1)
    found = [ops.take_along_axis(products, here, axis=-1)]
    found += [None if v is None else ops.take(v, here) for v in (*block.terms, block.bias)]
    if not selected:
        return found
    pairs = zip(found, selected, strict=True)
    return [None if a is None else ops.where(inside, a, b) for a, b in pairs]
