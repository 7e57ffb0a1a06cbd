"""The strategy for frozen labels: one pass over the labels, and no scores in memory."""

from typing import Any

from keras import ops

from keras_drill.fused_loss.first_pass import TileScores
from keras_drill.fused_loss.kept_exponentials import KeptExponentials
from keras_drill.fused_loss.label_blocks import LabelBlock
from keras_drill.fused_loss.second_pass import Derivative
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.ops.graph import matrix_product, with_dependencies


class FrozenLabels(KeptExponentials):
    """Accumulates the labels weighted by exponentials, block by block, with a running maximum.

        g = sum_j exp(s_j - top) w_j

    This sum is the gradient of the contexts, except for the targets' part and a factor for each
    row, which is known after the pass. Fused attention uses the same method. Since scores are not
    kept, products may have thousands of rows. `WalkOptions.adds_up_at_once` decides when the
    strategy applies.

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
        """Returns the gradient of the contexts `[R, d]`, without the part through target scores."""
        top, total = scores.kept
        return total * self.factors(scores, top, derivative)[:, None]


def _add(top, total, new_top, part):
    """Adds two sums `[R, d]` relative to their maxima `[R]`. Returns the new maximum and sum."""
    largest = ops.maximum(top, new_top)
    total = total * ops.exp(top - largest)[:, None] + part * ops.exp(new_top - largest)[:, None]
    return [largest, total]
