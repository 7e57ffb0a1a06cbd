"""The second pass over the labels: the gradients of a tile's losses."""

from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.first_pass import TileScores, TileTargets
from keras_drill.fused_loss.label_blocks import Labels
from keras_drill.fused_loss.matrix_accumulator import MatrixSum
from keras_drill.fused_loss.teacher_tile import TeacherTile
from keras_drill.fused_loss.token_tiles import Tile
from keras_drill.fused_loss.word_statistics import TileWords
from keras_drill.ops.graph import matrix_product, with_dependencies
from keras_drill.types import Tensor


class TileGradients(NamedTuple):
    """Gradients of `sum(weights * losses)` over a tile.

    Attributes:
        contexts: `[T, K, d]`, complete.
        log_priors: `[T, K]`, complete, or `None` if K = 1.
        label_sums: The score's sums for each label, a tuple of `[M]`.
        bias: `[M]`, or `None`.
        even: `[d]`, a term that belongs to the gradient of every label, or `None`.
        labels: The running sum of the labels' gradient including this tile; `()` if labels are
            frozen.
    """

    contexts: Tensor
    log_priors: Tensor | None
    label_sums: tuple
    bias: Tensor | None
    even: Tensor | None
    labels: Tensor | tuple[()]


class Derivative(NamedTuple):
    """The gradient of the losses with respect to the scores, in parts.

    Factors of rows are multiplied into the small operands of the matrix products.

        rows (dense softmax(scores) - shares at the targets - smoothing / V posteriors)

    The posterior of a label given its word is 1 if the word has one label and the token one
    context.

    Attributes:
        rows: `[R]`.
        dense: `[R]`, or `None` for 1.
        shares: `[R, S]`.
        extra: `[R]`, the part of `dense` from label smoothing and z-loss.
        words: `TileWords`, or `None`.
        teacher_tile: `TeacherTile`, or `None`.
    """

    rows: Tensor
    dense: Tensor | None
    shares: Tensor
    extra: Tensor
    words: TileWords | None
    teacher_tile: TeacherTile | None = None


def tile_derivative(options, tile: Tile, scores, targets, words) -> Derivative:
    """Returns the gradient of a tile's losses with respect to the scores, as a `Derivative`."""
    smoothing, z_loss = options.label_smoothing, options.z_loss
    shares = (1 - smoothing) * targets.shares
    extra = smoothing
    totals = None if words is None else words.totals
    if totals is not None:
        extra = smoothing * ops.reshape(totals, (-1,)) / words.num_words
    extra = extra + 2 * z_loss / tile.num_contexts * scores.log_normalizer
    if not z_loss and totals is None:
        rows = ops.reshape(tile.weights[:, None] * targets.responsibility, (-1,))
        return Derivative(rows, None, shares, extra, words)
    rows = ops.repeat(tile.weights, tile.num_contexts, axis=0)
    shares = shares * ops.reshape(targets.responsibility, (-1, 1))
    dense = (1 - smoothing) * ops.reshape(targets.responsibility, (-1,)) + extra
    return Derivative(rows, dense, shares, extra, words)


def tile_gradients(
    tile: Tile,
    labels: Labels,
    strategy,
    scores: TileScores,
    targets: TileTargets,
    words: TileWords | None,
    teacher_tile: TeacherTile | None,
    d_labels: MatrixSum | None,
    total,
) -> TileGradients:
    """Computes the gradients of a tile.

    Adds the gradient of the labels to `total`, a sum of `d_labels`, unless `d_labels` is `None`.
    """
    score = strategy.options.score
    derivative = tile_derivative(strategy.options, tile, scores, targets, words)
    derivative = derivative._replace(teacher_tile=teacher_tile)
    if strategy.passes_twice:
        found = _second_pass(tile, labels, strategy, scores, derivative, d_labels, total)
        d_hidden, hidden_sums, vectors, total = found
    else:
        d_hidden, hidden_sums, vectors = strategy.hidden_gradient(scores, derivative), [], []
    d_hidden = score.hidden_gradients(d_hidden, hidden_sums, tile.hidden, tile.hidden_terms)
    gradients = TileGradients(
        contexts=d_hidden,
        log_priors=_of_log_priors(strategy.options, tile, targets, words),
        label_sums=tuple(vectors[: score.num_label_sums]),
        bias=vectors[-1] if labels.has_bias else None,
        even=None,
        labels=total,
    )
    gradients = strategy.finish(gradients, tile, labels, scores, derivative, d_labels)
    contexts = ops.reshape(gradients.contexts, (-1, tile.num_contexts, tile.hidden.shape[-1]))
    return gradients._replace(contexts=contexts)


def _second_pass(tile: Tile, labels: Labels, strategy, scores, derivative, d_labels, total):
    """Runs the second pass over all blocks of labels.

    Returns:
        The gradient of the contexts `[R, d]` through the products; the score's sums over labels, a
        list of `[R]`; its sums over rows and the gradient of the bias, a list of `[M]`; and the new
        `total`.
    """
    accumulator = strategy.options.accumulator_dtype
    wide = ops.cast(tile.hidden, accumulator)
    d_hidden, hidden_sums, vectors = [], [], []
    for k, block in enumerate(labels.blocks):
        entries, factors, of_hidden, of_labels = strategy.derivatives(
            k, tile, block, scores, derivative
        )
        scores.kept[k] = None  # frees the memory in eager execution
        part = matrix_product(entries, block.labels, dtype=accumulator)
        d_hidden.append(part * factors[:, None])
        hidden_sums.append(of_hidden)
        vectors.append([ops.cast(x, accumulator) for x in of_labels])
        last = d_hidden[-1]
        if d_labels is not None:
            # Two products in sequence, each on all cores, are faster than both at once.
            weighted = with_dependencies(ops.cast(wide * factors[:, None], tile.hidden.dtype), last)
            part = matrix_product(entries, weighted, transpose_a=True, dtype=accumulator)
            last = total = d_labels.add_block(total, block.start, part)
        # The next block waits until this one is done.
        scores = scores._replace(log_normalizer=with_dependencies(scores.log_normalizer, last))
    hidden_sums = [sum(parts) * derivative.rows for parts in zip(*hidden_sums, strict=True)]
    vectors = [ops.concatenate(parts) for parts in zip(*vectors, strict=True)]
    return sum(d_hidden), hidden_sums, vectors, total


def _of_log_priors(options, tile: Tile, targets: TileTargets, words: TileWords | None):
    if tile.log_priors is None:
        return None
    posterior = targets.responsibility
    if words is not None and words.totals is not None:
        even = words.totals / words.num_words
        posterior = (1 - options.label_smoothing) * posterior + options.label_smoothing * even
    return -tile.weights[:, None] * posterior
