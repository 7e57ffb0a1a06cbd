"""The strategy for labels that are frozen: one pass over them, and no scores in memory."""

from typing import Any

from keras import ops

from keras_drill.fused_loss.first_pass import TileScores
from keras_drill.fused_loss.kept_exponentials import KeptExponentials
from keras_drill.fused_loss.label_blocks import LabelBlock
from keras_drill.fused_loss.second_pass import Derivative
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.ops.graph import matrix_product, with_dependencies


class FrozenLabels(KeptExponentials):
    """Adds up the labels by their exponentials, block by block, relative to the largest so far.

        g = sum_j exp(s_j - top) w_j

    That is the contexts' gradient but for a factor of each row, which is known when all labels have
    been passed, and for the targets. Attention is computed so, where it is fused. Without a tile
    to keep, products may have thousands of rows. See `adds_up_at_once` for when that is enough.

    References:
        - [Milakov & Gimelshein, 2018](https://arxiv.org/abs/1805.02867)
        - [Dao et al., 2022](https://arxiv.org/abs/2205.14135)
    """

    passes_twice = False

    def __init__(self, options, labels, compiled):
        super().__init__(options, labels, compiled)
        self._add = compiled(_add)

    def summarize(self, products, tile: Tile, block: LabelBlock, kept: list):
        top, mass, exponentials = self.exponentials(products, tile, block)
        accumulator = self.options.accumulator_dtype
        part = matrix_product(exponentials, block.labels, dtype=accumulator)
        kept = self._add(*kept, top, part) if kept else [top, part]
        return (top, with_dependencies(mass, kept[1])), kept

    def hidden_gradient(self, scores: TileScores, derivative: Derivative) -> Any:
        """`[R, d]`, but for what goes through the targets' scores."""
        top, total = scores.kept
        return total * self.factors(scores, top, derivative)[:, None]


def _add(top, total, new_top, part):
    """The sum of two sums `[R, d]` that are relative to their tops `[R]`, and its top."""
    largest = ops.maximum(top, new_top)
    total = total * ops.exp(top - largest)[:, None] + part * ops.exp(new_top - largest)[:, None]
    return [largest, total]
