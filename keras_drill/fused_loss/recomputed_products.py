"""The strategy for any score: keeps a tile's inner products and computes the scores twice."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_drill.fused_loss.biased_scores import biased_scores, cap_slopes
from keras_drill.fused_loss.first_pass import TileScores
from keras_drill.fused_loss.label_blocks import LabelBlock, Labels
from keras_drill.fused_loss.second_pass import Derivative, TileGradients
from keras_drill.fused_loss.teacher_tile import block_derivative
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.fused_loss.word_statistics import Words, posteriors
from keras_drill.ops.graph import anew, computes_anew, fold_columns, vector_product
from keras_drill.ops.saturated import saturated


class RecomputedProducts:
    """Keeps a tile's products and computes scores and exponentials from them in both passes.

    Args:
        options: `WalkOptions`.
        labels: The walk's `Labels`.
        words: The walk's `Words`.
        compiled: Function that compiles an element-wise function to one pass over memory, where
            this is faster.

    Attributes:
        passes_twice: Whether the gradients need a second pass over the labels.
    """

    passes_twice = True

    def __init__(self, options, labels: Labels, words: Words, compiled):
        self.options = options
        self._num_labels = labels.num_labels
        self._words = words
        sums_scores = bool(options.label_smoothing) and not words.smooths
        self._summary = compiled(partial(_summary, options, sums_scores))
        self._derivatives = compiled(partial(_derivatives, options))

    def summarize(self, products, tile: Tile, block: LabelBlock, kept: list):
        """Returns a summary of the block, and the list of kept results with the block's.

        The summary has the maximum of each row, the sum of exponentials relative to the maximum,
        and, for label smoothing, the sum of scores.
        """
        summary = self._summary(products, tile.hidden_terms, block.bias, block.terms, block.exists)
        return summary, [*kept, products]

    def whole_mass(self, block_mass, selected, top):
        """Returns the sum of exponentials over all labels."""
        return block_mass

    def mean_score(self, tile: Tile, totals):
        """Returns the mean score `[R]` from the sums of `summarize`; `None` without sums."""
        return ops.sum(totals[0], axis=-1) / self._num_labels if totals else None

    def derivatives(self, k: int, tile: Tile, block: LabelBlock, scores, derivative: Derivative):
        """Computes the gradient with respect to the products of block number `k`, and its sums.

        Returns:
            A matrix `[R, B]` in the compute dtype; the factors `[R]` of its rows; the score's sums
            for hidden states; and the score's sums for labels, followed by the gradient of the
            bias, if there is a bias.
        """
        words, smoothed = derivative.words, self.options.label_smoothing
        of_words: tuple = ()
        if self._words.smooths and words is not None:
            of_words = (tile.log_priors, self._words.of_labels(words, k, block))
            smoothed = smoothed / words.num_words
        else:
            smoothed = smoothed / self._num_labels
        entries, of_hidden, of_labels = self._derivatives(
            scores.kept[k],
            tile.hidden_terms,
            block.bias,
            block.terms,
            block.index,
            tile.columns - block.start,
            derivative.shares,
            scores.log_normalizer,
            derivative.dense,
            derivative.rows,
            smoothed,
            of_words,
            () if derivative.teacher_tile is None else derivative.teacher_tile.of_block(k),
            block.exists,
        )
        return entries, derivative.rows, of_hidden, of_labels

    def finish(
        self,
        gradients: TileGradients,
        tile: Tile,
        labels: Labels,
        scores: TileScores,
        derivative: Derivative,
        d_labels,
    ) -> TileGradients:
        """Adds the parts of the gradients that the blocks do not compute."""
        return gradients


def _summary(options, sums_scores, products, hidden_terms, bias, label_terms, exists):
    scores = biased_scores(options, products, hidden_terms, bias, label_terms, exists)
    top = ops.max(fold_columns(ops.maximum, scores), axis=-1)
    if computes_anew():
        products = anew(products, top)
        scores = biased_scores(options, products, hidden_terms, bias, label_terms, exists)
    mass = ops.sum(fold_columns(ops.add, ops.exp(scores - top[:, None])), axis=-1)
    if not sums_scores:
        return top, mass
    if exists is not None:
        scores = ops.where(exists, scores, 0.0)
    return top, mass, ops.sum(scores, axis=-1)


def _derivatives(
    options,
    products,
    hidden_terms,
    bias,
    label_terms,
    index,
    columns,
    shares,
    log_normalizer,
    dense,
    row_weights,
    smoothed,
    of_words,
    teacher_block,
    exists,
):
    products = anew(products, log_normalizer)
    scores = biased_scores(options, products, hidden_terms, bias, label_terms)
    derivative: Any = None
    if not teacher_block or options.distillation.cross_entropy_weight:
        parts = scores, log_normalizer, dense, smoothed, of_words, index, columns, shares
        derivative = _of_targets(options, *parts)
    if teacher_block:
        derivative = block_derivative(options.distillation, derivative, scores, teacher_block)
    if options.logit_soft_cap is not None:
        derivative = derivative * cap_slopes(options, scores)
    if exists is not None:
        derivative = ops.where(exists, derivative, 0.0)
    finite = saturated(products, keras.backend.standardize_dtype(derivative.dtype))
    by_products, hidden_sums, label_sums = options.score.product_gradients(
        derivative, row_weights, finite, hidden_terms, label_terms
    )
    if bias is not None:
        label_sums = (*label_sums, vector_product(row_weights, derivative))
    if options.compute_dtype == "float16":  # a kernel's slope may exceed the range of float16
        by_products = ops.clip(by_products, -4096.0, 4096.0)
    by_products = ops.cast(by_products, options.compute_dtype)
    if computes_anew() and options.score.num_label_sums:
        by_products = anew(by_products)
        terms = row_weights, hidden_terms, label_terms
        found = _sums(options, products, by_products, (), *terms)
        if found is not None:
            hidden_sums = found[0]
            sums = _sums(options, products, by_products, hidden_sums, *terms)[1]
            label_sums = (*sums, *label_sums[len(sums) :])
    return by_products, hidden_sums, label_sums


def _of_targets(options, scores, log_normalizer, dense, smoothed, of_words, index, columns, shares):
    """Returns the derivative of the targets' loss with respect to the scores."""
    derivative = ops.exp(scores - log_normalizer[:, None])
    if dense is not None:
        derivative = derivative * dense[:, None]
    if of_words:
        derivative = derivative - smoothed * posteriors(scores, log_normalizer, *of_words)
    elif options.label_smoothing:
        derivative = derivative - smoothed
    for s in range(columns.shape[1]):
        is_column = index == columns[:, s : s + 1]
        derivative = derivative - ops.where(is_column, shares[:, s : s + 1], 0.0)
    return derivative


def _sums(options, products, by_products, earlier, row_weights, hidden_terms, label_terms):
    """Returns a score's sums from the rounded derivative, computed after the tensors `earlier`."""
    by_products = anew(by_products, *earlier)
    products = saturated(anew(products, by_products), options.accumulator_dtype)
    rounded = ops.cast(by_products, options.accumulator_dtype)
    return options.score.product_sums(rounded, row_weights, products, hidden_terms, label_terms)
