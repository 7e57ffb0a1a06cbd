"""Cuts the labels into blocks. A tile is computed for one block after another."""

from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions
from keras_drill.fused_loss.label_shard import LabelShard
from keras_drill.fused_loss.matrix_accumulator import MatrixSum
from keras_drill.fused_loss.tiling import labels_per_block
from keras_drill.types import Tensor


class LabelBlock(NamedTuple):
    """A block of consecutive labels.

    Attributes:
        start: Index of the first label.
        index: `[B]`, 0, 1, 2 and so on, an argument of compiled functions: on CPUs, XLA does not
            vectorize exponentials in a loop that computes the index.
        labels: `[B, d]`, in the compute dtype.
        bias: `[B]`, or `None`.
        terms: The score's terms of the labels, a tuple of `[B]`.
        exists: `[B]`, false for padding rows, or `None` without padding.
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
        """`[B, d]`, with zeros in padding rows."""
        if self.exists is None:
            return self.labels
        return ops.where(self.exists[:, None], self.labels, ops.zeros_like(self.labels))

    @property
    def stop(self) -> int:
        return self.start + self.size


class Labels(NamedTuple):
    """All labels of a device, whole and in blocks.

    Attributes:
        whole: `[M, d]`, in the compute dtype.
        bias: `[M]`, or `None`.
        blocks: List of `LabelBlock`.
        shard: `LabelShard`, the position among the labels of all devices.
    """

    whole: Tensor
    bias: Tensor | None
    blocks: list[LabelBlock]
    shard: LabelShard

    @property
    def num_labels(self) -> int:
        """Number of labels of all devices."""
        return self.shard.num_labels

    @property
    def has_bias(self) -> bool:
        return self.bias is not None


def cut_labels(
    inputs: WalkInputs, options: WalkOptions, rows_per_tile: int, shard: LabelShard
) -> Labels:
    """Cuts the labels into blocks whose logits, for a tile, have a limited size.

    Args:
        inputs: The `WalkInputs`.
        options: The `WalkOptions`.
        rows_per_tile: Largest number of rows of a tile: more rows need smaller blocks.
        shard: The part of the labels on this device.

    Returns:
        The `Labels`: all of them and their blocks.
    """
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
    """Returns slices that cut the labels into blocks of limited size.

    On accelerators, one block contains all labels.

    Args:
        num_labels: Number of labels.
        width: Number of floats that are computed for each label. More floats need smaller blocks.
    """
    size = labels_per_block(num_labels, width, MatrixSum.rows_per_chunk)
    return [slice(start, min(start + size, num_labels)) for start in range(0, num_labels, size)]


def select(selected: list, products, columns, block: LabelBlock) -> list:
    """Collects the products, terms and bias of each row's target columns, block by block.

    Args:
        selected: Result for the previous blocks; empty for the first block.
        products: `[R, B]`.
        columns: `[R, S]`.
        block: The `LabelBlock` of the products.

    Returns:
        A list of tensors `[R, S]`: products, the score's terms, and bias (`None` without bias).
        Columns outside these blocks have arbitrary values.
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
