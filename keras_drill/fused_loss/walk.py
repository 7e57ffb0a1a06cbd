"""The loop behind every fused loss: computes one tile of tokens after another.

Shape letters:
    N tokens, K contexts per token, M labels, S columns per target, T tokens per tile, R = T * K
    rows per tile, B labels per block, d width of the joint space of contexts and labels.
"""

from typing import NamedTuple

from keras import ops

from keras_drill.fused_loss.accumulators import RunningSums, or_none
from keras_drill.fused_loss.first_pass import tile_losses, tile_scores, tile_targets
from keras_drill.fused_loss.frozen_labels import FrozenLabels
from keras_drill.fused_loss.inputs import WalkInputs, WalkOptions, tokens_per_tile
from keras_drill.fused_loss.kept_exponentials import KeptExponentials
from keras_drill.fused_loss.label_blocks import Labels, cut_labels
from keras_drill.fused_loss.label_shard import LabelShard
from keras_drill.fused_loss.matrix_accumulator import MatrixSum
from keras_drill.fused_loss.recomputed_products import RecomputedProducts
from keras_drill.fused_loss.second_pass import TileGradients, tile_gradients
from keras_drill.fused_loss.teacher_pass import TeacherPass
from keras_drill.fused_loss.tiling import rows_without_scores
from keras_drill.fused_loss.token_tiles import TokenTiles
from keras_drill.fused_loss.word_statistics import Words
from keras_drill.ops.graph import fuse, with_dependencies
from keras_drill.types import Tensor

# For tiles with fewer scores, compiling the element-wise operations costs more than it saves.
FUSE_FROM_SCORES = 2**20


class Walk(NamedTuple):
    """Result of the fused loss for N tokens: losses, log-probabilities and gradients.

    Attributes:
        losses: `[N]`, with label smoothing and z-loss, in the accumulator dtype.
        log_probs: `[N]`, log-probabilities of the targets.
        posteriors: `None` if every target has one label, or `[N, S]`, the posterior probability of
            each of the target's S labels. A mixture averages the posteriors over its hidden states,
            weighted by their responsibilities. Masked labels and tokens of weight 0 have posterior
            0.
        ranks: `None`, or `[N]`, the number of words that are more probable than the target, in the
            accumulator dtype. Among equally probable words, the first one ranks first.
        gradients: The gradients of `sum(weights * losses)` with respect to `(contexts, log_priors,
            labels, bias, *score_parameters)`; `None` for inputs that are `None` and for frozen
            labels. `()` if not requested.
    """

    losses: Tensor
    log_probs: Tensor
    posteriors: Tensor | None
    ranks: Tensor | None
    gradients: tuple


def walk(
    inputs: WalkInputs,
    options: WalkOptions,
    weights=None,
    with_gradients=False,
    shard: LabelShard | None = None,
) -> Walk:
    """Computes losses, log-probabilities and, if requested, gradients, tile by tile.

    With scores `s` of a row and the target's columns `y`,

        log p_k = lse(s_k[y]) - lse(s_k)
        log p   = lse_k(log_prior_k + log p_k)

    and the derivative of `-log p` with respect to a score is *probability - target posterior*:

        r_k (softmax(s_k)_j - q_kj),   q_k = softmax(s_k[y]),   r = posterior over contexts.

    Each tile keeps its inner products. For ordinary softmaxes, a tile keeps exponentials instead,
    since the derivative is a multiple of the exponentials. For frozen labels, a tile keeps neither.
    All other intermediate results exist for one block of labels at a time.

    Args:
        inputs: `WalkInputs`.
        options: `WalkOptions`.
        weights: `[N]` factors of the losses in the gradients. Tokens of weight 0 are skipped: their
            loss, log-probability and gradient are 0. `None` means 1.
        with_gradients: Whether to compute gradients.
        shard: The part of the labels that `inputs` contain; `None` for all labels. Gradients are
            computed for this part only, so the caller sums the gradients of contexts over devices.
    """
    num_labels, width = inputs.labels.shape
    shard = shard or LabelShard(num_labels, num_labels)
    if with_gradients and options.adds_up_at_once(inputs):
        options = _with_large_tiles(inputs, options)
    tiles = TokenTiles(inputs, options, weights, with_gradients, shard)
    rows_per_tile = tiles.most_tokens * inputs.contexts.shape[1]
    floats_per_label = max(rows_per_tile, width, _teacher_width(inputs.teacher))
    labels = cut_labels(inputs, options, floats_per_label, shard)
    is_compiled = with_gradients and rows_per_tile * num_labels >= FUSE_FROM_SCORES
    compiled = fuse if is_compiled else lambda function: function
    words = Words(inputs, options, labels, compiled)
    strategy = _strategy(inputs, options, with_gradients, labels, words, compiled)
    teacher_pass = None
    if options.distillation is not None:
        teacher_pass = TeacherPass(
            inputs, options, options.distillation, labels, floats_per_label, compiled
        )
    d_labels = None
    if with_gradients and not options.labels_are_frozen:
        d_labels = MatrixSum(num_labels, width, options.accumulator_dtype)

    def body(index, sums):
        tile = tiles.tile(index)
        scores = tile_scores(tile, labels, strategy, words.needs_products)
        targets = tile_targets(tile, scores)
        of_words, ranks = words.of_tile(tile, scores, targets)
        uniform = None if of_words is None else of_words.uniform
        for x in (uniform, ranks):  # the second pass waits until the kept products are freed
            if x is not None:
                scores = scores._replace(log_normalizer=with_dependencies(scores.log_normalizer, x))
        scores = scores._replace(products=[])
        losses, teacher_tile = tile_losses(options, tile, scores, targets, uniform), None
        if teacher_pass is not None:
            teacher_tile = teacher_pass.of_tile(tile, scores)
            losses = teacher_pass.losses(losses, teacher_tile)
        found = losses, targets.log_probs, targets.posteriors, ranks
        gradients = None
        if with_gradients:
            gradients = tile_gradients(
                tile,
                labels,
                strategy,
                scores,
                targets,
                of_words,
                teacher_tile,
                d_labels,
                sums.gradients.labels,
            )
        sums = sums.add(tiles, index, found, gradients)
        # TensorFlow runs up to ten iterations in parallel. The counter waits for the sums, so that
        # the next tile does not use memory before this one is done.
        return with_dependencies(index + 1, sums.last), sums

    start = RunningSums.zeros(inputs, options, tiles.padded, with_gradients, d_labels)
    _, sums = ops.while_loop(
        lambda index, _: index < tiles.num_tiles, body, (ops.zeros((), "int32"), start)
    )
    return Walk(
        tiles.restore(sums.losses, only_counted=True),
        tiles.restore(sums.log_probs, only_counted=True),
        tiles.restore(or_none(sums.posteriors), only_counted=True),
        tiles.restore(or_none(sums.ranks), only_counted=True),
        _whole_gradients(sums.gradients, inputs, options, tiles, labels, d_labels)
        if with_gradients
        else (),
    )


def _strategy(
    inputs: WalkInputs,
    options: WalkOptions,
    with_gradients: bool,
    labels: Labels,
    words: Words,
    compiled,
) -> KeptExponentials | RecomputedProducts:
    """Returns the fastest strategy that is correct for the score and the requested gradients."""
    if with_gradients and options.adds_up_at_once(inputs):
        return FrozenLabels(options, labels, compiled)
    if with_gradients and options.keeps_exponentials(inputs):
        return KeptExponentials(options, labels, compiled)
    return RecomputedProducts(options, labels, words, compiled)


def _teacher_width(teacher) -> int:
    """Returns the width of a teacher's labels, 0 if there are none."""
    return teacher.labels.shape[1] if isinstance(teacher, WalkInputs) else 0


def _with_large_tiles(inputs: WalkInputs, options: WalkOptions) -> WalkOptions:
    """Returns the options for tiles that keep no scores. Memory does not limit their size."""
    if options.tile_size is not None:
        return options
    num_contexts = inputs.contexts.shape[1]
    rows = num_contexts * tokens_per_tile(num_contexts, inputs.labels.shape[0], options)
    return options._replace(tile_size=rows_without_scores(rows) // num_contexts)


def _whole_gradients(
    sums: TileGradients,
    inputs: WalkInputs,
    options: WalkOptions,
    tiles: TokenTiles,
    labels: Labels,
    d_labels: MatrixSum | None,
) -> tuple:
    """Returns the gradients as in `Walk`, from the sums over all tiles."""
    if tiles.scale is not None:
        sums = TileGradients(
            *(
                tuple(y * tiles.scale for y in x) if isinstance(x, tuple) else x * tiles.scale
                for x in sums
            )
        )
    of_contexts = tiles.restore(sums.contexts), tiles.restore(or_none(sums.log_priors))
    if d_labels is None:
        return *of_contexts, None, or_none(sums.bias)
    total, d_parameters = sums.labels, []
    for block in labels.blocks:
        rows = slice(block.start, block.stop)
        more, of_parameters = options.score.label_gradients(
            d_labels.matrix(total)[rows],
            [with_dependencies(x, total)[rows] for x in sums.label_sums],
            block.labels,
            block.terms,
        )
        d_parameters.append(of_parameters)
        if or_none(sums.even) is not None:
            more = ops.broadcast_to(sums.even, block.labels.shape)
            if block.exists is not None:
                more = ops.where(block.exists[:, None], more, ops.zeros_like(more))
        if more is not None:
            for x in of_parameters:
                total = with_dependencies(total, x)  # `x` depends on the old `total`
            total = d_labels.add_block(total, block.start, more)
    return (
        *of_contexts,
        d_labels.matrix(total),
        or_none(sums.bias),
        *[ops.concatenate(parts) for parts in zip(*d_parameters, strict=True)],
    )
