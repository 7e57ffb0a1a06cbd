"""The first pass over the labels: the normalisers of a tile, and its targets' probabilities."""

import math
from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.biased_scores import biased_scores, cap_slopes
from keras_drill.fused_loss.label_blocks import Labels, select
from keras_drill.fused_loss.label_shard import LabelShard
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.ops.graph import matrix_product, with_data_dependency, with_dependencies
from keras_drill.types import Tensor


class TileScores(NamedTuple):
    """The results of one pass over the labels for a tile of R rows.

    A score is a logit. B is the number of labels of a block, S the number of labels of a target.

    Attributes:
        products: The inner products `[R, B]` of each block; empty if they are not needed.
        kept: Intermediate results that the second pass uses. They depend on the strategy:
            `[R, B]` for each block, or a sum over blocks.
        tops: `[R, blocks]`, the maximum that is subtracted before the exponential, for each block.
        block_mass: `[R]`, the sum of exponentials over blocks, without the targets if the strategy
            computes the targets separately.
        mass: `[R]`, the sum of exponentials over all labels, including the targets.
        log_normalizer: `[R]`, the logarithm of the sum of exponentials of the scores.
        mean: `[R]`, the mean score; `None` if label smoothing does not use it.
        selected: `[R, S]`, the scores of the targets; -inf for masked columns.
        slopes: `[R, S]`, the slopes of the soft cap at these scores.
    """

    products: list
    kept: list
    tops: Tensor
    block_mass: Tensor
    mass: Tensor
    log_normalizer: Tensor
    mean: Tensor | None
    selected: Tensor
    slopes: Tensor


class TileTargets(NamedTuple):
    """Log-probabilities and posteriors of a tile's targets.

    Attributes:
        log_probs: `[T]`.
        responsibility: `[T, K]`, the posterior over contexts; 1 if K = 1.
        shares: `[R, S]`, each context's posterior over the target's columns.
        posteriors: `[T, S]`, the mean of `shares` weighted by responsibility; `None` if S = 1.
    """

    log_probs: Tensor
    responsibility: Tensor
    shares: Tensor
    posteriors: Tensor | None


def tile_scores(tile: Tile, labels: Labels, strategy, with_products: bool) -> TileScores:
    """Runs the first pass over all blocks of labels. Keeps their products if `with_products`."""
    options = strategy.options
    all_products, rows = [], tile.hidden
    summaries: list = []
    kept: list = []
    selected: list = []
    for block in labels.blocks:
        if summaries and not strategy.passes_twice:
            # XLA would copy blocks that are cut outside of the loop over tiles, which is all
            # labels.
            cut = labels.whole[block.start : block.stop]
            block = block._replace(labels=with_data_dependency(cut, summaries[-1][1]))
        products = matrix_product(rows, block.labels, transpose_b=True)  # [R, B]
        selected = select(selected, products, tile.columns, block)
        summary, kept = strategy.summarize(products, tile, block, kept)
        all_products += [products] if with_products else []
        summaries.append(summary)
        # The next block waits until nothing else reads the products of this one.
        rows = with_dependencies(rows, selected[0], summary[1])
    tops, masses, *totals = (ops.stack(x, axis=-1) for x in zip(*summaries, strict=True))
    products, *terms, bias = selected
    selected = biased_scores(options, products, tile.hidden_terms, bias, terms)  # [R, S]
    top = labels.shard.maximum(ops.max(tops, axis=-1))
    block_mass = ops.sum(masses * ops.exp(tops - top[:, None]), axis=-1)
    mean = strategy.mean_score(tile, totals) if options.label_smoothing else None
    block_mass, selected, mean = _of_all_shards(labels.shard, tile, block_mass, selected, mean)
    slopes = cap_slopes(options, selected)
    if tile.column_mask is not None:
        selected = ops.where(tile.column_mask, selected, ops.full_like(selected, -math.inf))
    mass = strategy.whole_mass(block_mass, selected, top)
    return TileScores(
        all_products, kept, tops, block_mass, mass, top + ops.log(mass), mean, selected, slopes
    )


def _of_all_shards(shard: LabelShard, tile: Tile, block_mass, selected, mean) -> tuple:
    """Sums over the labels of all devices, in one message of a few numbers per row."""
    if shard.axis is None:
        return block_mass, selected, mean
    columns = [block_mass[:, None], shard.only_here(selected, tile.columns)]
    columns += [] if mean is None else [mean[:, None]]
    total = shard.sum(ops.concatenate(columns, axis=1))
    num_columns = selected.shape[1]
    return total[:, 0], total[:, 1 : num_columns + 1], None if mean is None else total[:, -1]


def tile_targets(tile: Tile, scores: TileScores) -> TileTargets:
    """Applies the composition: computes the probabilities of the targets from scores."""
    num_contexts, num_columns = tile.num_contexts, scores.selected.shape[1]
    selected = scores.selected
    numerator = selected[:, 0] if num_columns == 1 else ops.logsumexp(selected, axis=-1)  # [R]
    component = ops.reshape(numerator - scores.log_normalizer, (-1, num_contexts))  # [T, K]
    if tile.log_priors is not None:
        component = component + tile.log_priors
    log_probs = component[:, 0] if num_contexts == 1 else ops.logsumexp(component, axis=-1)  # [T]
    responsibility = ops.exp(component - log_probs[:, None])  # [T, K]
    if num_columns == 1:
        return TileTargets(log_probs, responsibility, ops.ones_like(selected), None)
    shares = ops.exp(selected - numerator[:, None])
    posteriors = ops.reshape(shares, (-1, num_contexts, num_columns))
    posteriors = ops.sum(responsibility[..., None] * posteriors, axis=1)
    return TileTargets(log_probs, responsibility, shares, posteriors)


def tile_losses(options, tile: Tile, scores: TileScores, targets: TileTargets, uniform=None):
    """Computes losses `[T]` with label smoothing and z-loss.

    `uniform` `[T]` is the cross-entropy with the uniform distribution over words. `None` computes
    it from the mean score.
    """
    losses = -targets.log_probs
    if options.label_smoothing:
        uniform = scores.log_normalizer - scores.mean if uniform is None else uniform
        losses = (1 - options.label_smoothing) * losses + options.label_smoothing * uniform
    if options.z_loss:
        squares = ops.reshape(ops.square(scores.log_normalizer), (-1, tile.num_contexts))
        losses = losses + options.z_loss * ops.mean(squares, -1)
    return losses
