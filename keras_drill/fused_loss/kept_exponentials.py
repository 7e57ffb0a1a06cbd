"""The strategy for ordinary softmaxes: a tile holds exponentials and is read only once."""

from functools import partial

from keras import ops

from keras_drill.fused_loss.biased_scores import biased_scores, cap_slopes
from keras_drill.fused_loss.first_pass import TileScores
from keras_drill.fused_loss.label_blocks import LabelBlock, Labels
from keras_drill.fused_loss.matrix_accumulator import MatrixSum
from keras_drill.fused_loss.second_pass import Derivative, TileGradients
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.ops.graph import fold_columns


class KeptExponentials:
    """Keeps exp(scores), multiplied by the slopes of a soft cap, instead of the products.

    In each row, the derivative with respect to the scores is a multiple of the exponentials. There
    are two exceptions: the targets, which are set to 0 and added separately, and the term of label
    smoothing, which is equal for all labels. `WalkOptions.keeps_exponentials` decides when the
    strategy applies. The methods are those of `RecomputedProducts`.

    Args:
        options: `WalkOptions`.
        labels: The walk's `Labels`.
        compiled: Function that compiles an element-wise function to one pass over memory, where
            this is faster.
    """

    passes_twice = True

    def __init__(self, options, labels: Labels, compiled):
        self.options = options
        self._exponentials = compiled(partial(_exponentials, options))
        if options.label_smoothing:
            # Each device sums only its own part of the labels.
            num_labels, dtype = labels.num_labels, options.accumulator_dtype
            sums = [ops.sum(ops.cast(block.real_labels, dtype), axis=0) for block in labels.blocks]
            self._mean_label = sum(sums) / num_labels
            self._mean_bias = 0.0
            if labels.has_bias:
                shard = labels.shard
                self._mean_bias = ops.mean(shard.clear(labels.bias)) * (shard.size / num_labels)

    def summarize(self, products, tile: Tile, block: LabelBlock, kept: list):
        *summary, exponentials = self.exponentials(products, tile, block)
        return summary, [*kept, exponentials]

    def exponentials(self, products, tile: Tile, block: LabelBlock):
        """Returns maxima `[R]`, sums `[R]` and exponentials `[R, B]`; see `_exponentials`."""
        here = tile.columns - block.start
        if tile.column_mask is not None:
            here = ops.where(tile.column_mask, here, -1)
        return self._exponentials(products, block.bias, block.index, here, block.exists)

    def whole_mass(self, block_mass, selected, top):
        return block_mass + ops.sum(ops.exp(selected - top[:, None]), axis=-1)

    def mean_score(self, tile: Tile, totals):
        # The mean of the inner products is the inner product with the mean.
        hidden = ops.cast(tile.hidden, self.options.accumulator_dtype)
        return ops.matmul(hidden, self._mean_label) + self._mean_bias

    def derivatives(self, k: int, tile: Tile, block: LabelBlock, scores, derivative: Derivative):
        entries = scores.kept[k]
        factors = self.factors(scores, scores.tops[:, k], derivative)
        low = ops.cast(factors, entries.dtype)
        of_labels = () if block.bias is None else (ops.matmul(low, entries),)
        return entries, factors, (), of_labels

    def factors(self, scores: TileScores, tops, derivative: Derivative):
        """Returns factors `[R]` that turn exponentials relative to `tops` into the derivative."""
        factors = derivative.rows
        if derivative.dense is not None:
            factors = factors * derivative.dense
        return factors * ops.exp(tops - scores.log_normalizer)

    def finish(
        self,
        gradients: TileGradients,
        tile: Tile,
        labels: Labels,
        scores: TileScores,
        derivative: Derivative,
        d_labels: MatrixSum | None,
    ) -> TileGradients:
        gradients = self._with_targets(gradients, tile, labels, scores, derivative, d_labels)
        if not self.options.label_smoothing:
            return gradients
        smoothed = -self.options.label_smoothing * derivative.rows
        hidden = ops.cast(tile.hidden, self.options.accumulator_dtype)
        bias = gradients.bias
        if bias is not None:
            bias = labels.shard.clear(bias + ops.sum(smoothed) / labels.num_labels)
        return gradients._replace(
            contexts=gradients.contexts + smoothed[:, None] * self._mean_label,
            bias=bias,
            even=ops.matmul(smoothed, hidden) / labels.num_labels,
        )

    def _with_targets(self, gradients, tile, labels, scores, derivative, d_labels):
        """Adds the gradients through the targets' own scores."""
        # probability - share = -share * (probability of the others): avoids a difference of numbers
        # near 1.
        entries = -derivative.shares * (scores.block_mass / scores.mass)[:, None]
        normalizer = scores.log_normalizer[:, None]
        entries += derivative.extra[:, None] * ops.exp(scores.selected - normalizer)
        entries *= derivative.rows[:, None] * scores.slopes
        entries = labels.shard.only_here(entries, tile.columns)
        columns = labels.shard.only_here(tile.columns, tile.columns)
        d_hidden, d_targets, _ = self.options.score.pair_gradients(
            entries, tile.hidden, ops.take(labels.whole, columns, axis=0), ()
        )
        num_columns, width = d_targets.shape[1:]

        def by_token(x):
            return ops.reshape(x, (-1, tile.num_contexts, num_columns, *x.shape[2:]))

        # Sum over the contexts of a token.
        targets = ops.reshape(by_token(columns)[:, 0], (-1,))  # [T * S]
        d_targets = ops.reshape(ops.sum(by_token(d_targets), axis=1), (-1, width))
        entries = ops.reshape(ops.sum(by_token(entries), axis=1), (-1,))
        bias = gradients.bias
        if bias is not None:
            bias = bias + ops.segment_sum(entries, targets, labels.shard.size)
        gradients = gradients._replace(contexts=gradients.contexts + d_hidden, bias=bias)
        if d_labels is None:
            return gradients
        return gradients._replace(labels=d_labels.add_rows(gradients.labels, targets, d_targets))


def _exponentials(options, products, bias, index, columns, exists):
    """Returns the maximum of each row, the sum of exponentials, and the block's kept entries.

    Exponentials are relative to the maximum. The entries of `columns` count as 0.
    """
    scores = biased_scores(options, products, (), bias, (), exists)
    top = ops.max(fold_columns(ops.maximum, scores), axis=-1)
    kept = ops.exp(scores - top[:, None])
    for s in range(columns.shape[1]):
        kept = ops.where(index == columns[:, s : s + 1], 0.0, kept)
    kept = ops.cast(kept, options.compute_dtype)
    rounded = ops.cast(kept, options.accumulator_dtype)
    if options.logit_soft_cap is not None:
        kept = ops.cast(rounded * cap_slopes(options, scores), options.compute_dtype)
    return top, ops.sum(rounded, axis=-1), kept
