"""The one routine behind every loss: a walk over tiles of tokens.

Shape letters:
    N tokens, K contexts per token, M labels, S columns that make up a target,
    T tokens per tile, R = T * K rows per tile, d width of the joint space.
"""

import math
from functools import partial
from typing import Any, NamedTuple

from keras import ops

from keras_drill.ops import tile_entries
from keras_drill.ops.graph import after, fuse, matrix_product, put_rows
from keras_drill.ops.matrix_sum import MatrixSum
from keras_drill.ops.walk_options import WalkOptions, tile_count, tokens_per_tile

# Whatever is made of a tile is made for blocks of labels, so that it takes about this much.
LABEL_BLOCK_BYTES = 32 * 2**20
# A tile of fewer scores is not worth the time to compile its element-wise parts.
FUSE_FROM_SCORES = 2**20


class WalkInputs(NamedTuple):
    """The tensors of a walk.

    Attributes:
        contexts: `[N, K, d]`, one context per token (softmax, KerBS) or K (mixtures).
        log_priors: `[N, K]`, or `None` where K = 1.
        labels: `[M, d]`.
        bias: `[M]`, or `None`.
        score_parameters: Tuple of tensors whose first axis is M (the kernel's theta).
        columns: `[N, S]` integers, the labels whose probabilities add up to the target's.
        column_mask: `[N, S]` booleans, or `None` where all columns count.
    """

    contexts: Any
    log_priors: Any
    labels: Any
    bias: Any
    score_parameters: tuple
    columns: Any
    column_mask: Any = None


class Walk(NamedTuple):
    """What a walk brings home.

    Attributes:
        losses: `[N]`, smoothed and with z-loss, in the accumulator's dtype.
        log_probs: `[N]`, log-probabilities of the targets.
        posteriors: `None` where S = 1, or `[N, S]`, the posterior over the target's columns,
            averaged over contexts by their responsibility. 0 for masked columns and for tokens of
            weight 0.
        gradients: `None`, or the gradients of `sum(weights * losses)` for
            `(contexts, log_priors, labels, bias, *score_parameters)`, None for what is None.
    """

    losses: Any
    log_probs: Any
    posteriors: Any
    gradients: tuple | None


def label_blocks(num_labels: int, width: int) -> list[slice]:
    """Slices of the labels, of about `LABEL_BLOCK_BYTES` where each label takes `width` floats."""
    count = max(1, math.ceil(4 * num_labels * width / LABEL_BLOCK_BYTES))
    chunk = MatrixSum.rows_per_chunk
    size = math.ceil(num_labels / count / chunk) * chunk
    return [slice(start, min(start + size, num_labels)) for start in range(0, num_labels, size)]


class _Block(NamedTuple):
    """A block of labels: the number of the first, `[B, d]`, `[B]` or None, a tuple of `[B]`."""

    start: int
    labels: Any
    bias: Any
    terms: tuple


def walk(inputs: WalkInputs, options: WalkOptions, weights=None, with_gradients=False) -> Walk:
    """Computes losses, log-probabilities and, if asked, gradients, one tile of tokens at a time.

    With scores `s` of a row and the target's columns `y`,

        log p_k = lse(s_k[y]) - lse(s_k)
        log p   = lse_k(log_prior_k + log p_k)

    and the derivative of `-log p` with respect to a score is *probability - target posterior*:

        r_k (softmax(s_k)_j - q_kj),   q_k = softmax(s_k[y]),   r = posterior over contexts.

    A tile's inner products are kept, or for ordinary softmaxes the exponentials that the derivative
    is a multiple of; all else is made for one block of labels after another.

    Args:
        inputs: `WalkInputs`.
        options: `WalkOptions`.
        weights: `[N]` factors of the losses in the gradients. Tokens of weight 0 are not
            computed at all: they get loss 0, log-probability 0 and gradient 0. `None` means 1.
        with_gradients: Whether to compute gradients.
    """
    accumulator = options.accumulator_dtype
    num_contexts, width = inputs.contexts.shape[1:]
    num_labels = inputs.labels.shape[0]
    num_columns = inputs.columns.shape[1]
    num_tokens = inputs.contexts.shape[0]
    if num_tokens is None:
        num_tokens = ops.shape(inputs.contexts)[0]
    num_tiles = tile_count(num_tokens, num_contexts, num_labels, options)
    most_tokens = tokens_per_tile(num_contexts, num_labels, options)
    if isinstance(num_tokens, int):
        tile = most_tokens = math.ceil(num_tokens / num_tiles)  # of equal size: little padding
    else:
        tile = (num_tokens + num_tiles - 1) // num_tiles
        if with_gradients:  # few different sizes: something is compiled for each
            step = max(1, most_tokens // 8)
            tile = (tile + step - 1) // step * step
    padded = num_tiles * tile

    order = scale = None
    num_counted = num_tokens
    if weights is not None:
        weights = ops.cast(weights, accumulator)
        # Weights near 1 keep hidden * weight inside float16's range; `scale` is put back last.
        scale = ops.max(ops.abs(weights), initial=0.0)
        scale = ops.where(scale > 0, scale, ops.ones_like(scale))
        weights = weights / scale
        order = ops.argsort(ops.cast(weights == 0, "int32"))  # tokens that count come first
        num_counted = ops.sum(ops.cast(weights != 0, "int32"))

    counted = ops.arange(padded) < num_counted

    def arrange(x, dtype=None):
        """Puts the tokens that count first, and pads to whole tiles."""
        if x is None:
            return None
        x = x if dtype is None else ops.cast(x, dtype)
        x = x if order is None else ops.take(x, order, axis=0)
        return ops.pad(x, [(0, padded - num_tokens)] + [(0, 0)] * (len(x.shape) - 1))

    def clear(x, counted):
        """Clears all but the tokens that count."""
        if x is None:
            return None
        counted = ops.reshape(counted, (-1,) + (1,) * (len(x.shape) - 1))
        return ops.where(counted, x, ops.zeros_like(x))

    def restore(x):
        """Undoes `arrange`."""
        x = x[:num_tokens]
        return x if order is None else ops.take(x, ops.argsort(order), axis=0)

    contexts = arrange(inputs.contexts, options.compute_dtype)  # [padded, K, d], cleared by tiles
    log_priors = clear(arrange(inputs.log_priors, accumulator), counted)  # [padded, K]
    columns = clear(arrange(inputs.columns, "int32"), counted)  # [padded, S]
    column_mask = arrange(inputs.column_mask)
    if column_mask is not None:  # a token that does not count has one column, not none
        column_mask = ops.logical_or(column_mask, ~counted[:, None])
    if weights is None:
        weights = ops.ones((num_tokens,), accumulator)
    weights = clear(arrange(weights), counted)
    labels = ops.cast(inputs.labels, options.compute_dtype)
    bias = None if inputs.bias is None else ops.cast(inputs.bias, accumulator)
    parameters = tuple(ops.cast(p, accumulator) for p in inputs.score_parameters)
    blocks = []
    for block in label_blocks(num_labels, max(width, most_tokens * num_contexts)):
        terms = options.score.label_terms(labels[block], [p[block] for p in parameters])
        block_bias = None if bias is None else bias[block]
        blocks.append(_Block(block.start, labels[block], block_bias, tuple(terms)))
    is_fused = with_gradients and most_tokens * num_contexts * num_labels >= FUSE_FROM_SCORES
    entries = (tile_entries.summary, tile_entries.exponentials, tile_entries.derivatives)
    entries = [partial(f, options) for f in entries]
    entries = _Entries(*[fuse(f) if is_fused else f for f in entries])
    d_labels = MatrixSum(num_labels, width, accumulator) if with_gradients else None
    mean_label = None
    if with_gradients and options.keeps_exponentials and options.label_smoothing:
        sums = [ops.sum(ops.cast(block.labels, accumulator), axis=0) for block in blocks]
        mean_label = sum(sums) / num_labels, 0.0 if bias is None else ops.mean(bias)

    def body(index, *carry):
        start = index * tile

        def rows(x, *tail):
            return ops.slice(x, [start] + [0] * len(tail), [tile, *tail])

        def put(x, update):
            return put_rows(x, start, ops.cast(update, x.dtype))

        losses, log_probs, *gradients = carry
        result = _one_tile(
            clear(rows(contexts, num_contexts, width), rows(counted)),
            None if log_priors is None else rows(log_priors, num_contexts),
            rows(columns, num_columns),
            None if column_mask is None else rows(column_mask, num_columns),
            rows(weights),
            labels,
            blocks,
            mean_label,
            options,
            entries,
            d_labels,
            gradients[-1] if with_gradients else None,
        )
        carry = [put(losses, result.losses), put(log_probs, result.log_probs)]
        if num_columns > 1:
            carry.append(put(gradients.pop(0), result.posteriors))
        if with_gradients:
            d_contexts, d_log_priors, *vectors, _ = gradients
            carry.append(put(d_contexts, result.gradients[0]))
            carry.append(put(d_log_priors, result.gradients[1]))
            parts = result.gradients[2:-1]
            carry += [total + part for total, part in zip(vectors, parts, strict=True)]
            carry.append(result.gradients[-1])
        # TensorFlow starts up to ten iterations at once. The counter waits for the sums, so that
        # the next tile is not begun, nor in memory, before this one is done.
        return after(index + 1, carry[-1]), *carry

    carry = [ops.zeros((padded,), accumulator), ops.zeros((padded,), accumulator)]
    carry += [ops.zeros((padded, num_columns), accumulator)] if num_columns > 1 else []
    if with_gradients:
        carry.append(ops.zeros((padded, num_contexts, width), accumulator))
        carry.append(ops.zeros((padded, num_contexts), accumulator))
        num_vectors = options.score.num_label_sums + (bias is not None)
        carry += [ops.zeros((num_labels,), accumulator)] * num_vectors
        carry += [] if mean_label is None else [ops.zeros((width,), accumulator)]
        carry.append(d_labels.zeros())
    if order is not None:
        num_tiles = (num_counted + ops.maximum(tile, 1) - 1) // ops.maximum(tile, 1)
    _, losses, log_probs, *gradients = ops.while_loop(
        lambda index, *_: index < num_tiles, body, (ops.zeros((), "int32"), *carry)
    )

    posteriors = gradients.pop(0) if num_columns > 1 else None
    if with_gradients:
        if scale is not None:
            gradients = [gradient * scale for gradient in gradients]
        d_contexts, d_log_priors, *vectors, total = gradients
        even = None if mean_label is None else vectors.pop()
        d_bias = None if bias is None else vectors.pop()
        total, d_parameters = _finish(d_labels, total, vectors, even, blocks, options.score)
        gradients = (
            restore(d_contexts),
            None if log_priors is None else restore(d_log_priors),
            d_labels.matrix(total),
            d_bias,
            *d_parameters,
        )
    counted = ops.cast(counted, accumulator)
    return Walk(
        restore(losses * counted),
        restore(log_probs * counted),
        None if posteriors is None else restore(posteriors * counted[:, None]),
        gradients if with_gradients else None,
    )


class _Entries(NamedTuple):
    """The functions of `tile_entries`, each compiled where that pays."""

    summary: Any
    exponentials: Any
    derivatives: Any


def _one_tile(
    contexts,
    log_priors,
    columns,
    column_mask,
    weights,
    labels,
    blocks,
    mean_label,
    options,
    entries,
    d_labels,
    total,
) -> Walk:
    """The walk's body: `[T, K, d]` contexts against all blocks of labels.

    Args:
        mean_label: Where exponentials are smoothed, the mean of all labels `[d]` and of the bias.
        d_labels: The `MatrixSum` of the labels' gradient, or None for no gradients.
        total: What has been added to it.

    Returns:
        A `Walk` whose gradients are for contexts and log-priors, then the score's label sums `[M]`,
        that of the bias if any, to smooth exponentials what is the same for all labels `[d]`, and
        `total` with this tile's share, as far as it goes through the products.
    """
    accumulator, smoothing, z_loss = (
        options.accumulator_dtype,
        options.label_smoothing,
        options.z_loss,
    )
    num_contexts, width = contexts.shape[1:]
    num_columns = columns.shape[1]
    num_labels = labels.shape[0]
    hidden = ops.reshape(contexts, (-1, width))  # [R, d]
    columns = ops.repeat(columns, num_contexts, axis=0)  # [R, S]
    if column_mask is not None:
        column_mask = ops.repeat(column_mask, num_contexts, axis=0)
    hidden_terms = tuple(options.score.hidden_terms(hidden))
    keeps_exponentials = d_labels is not None and options.keeps_exponentials

    kept, summaries, selected, rows = [], [], None, hidden
    for block in blocks:
        x = matrix_product(rows, block.labels, transpose_b=True)  # [R, B]
        selected = _select(selected, x, columns, block)
        if keeps_exponentials:
            here = columns - block.start
            if column_mask is not None:
                here = ops.where(column_mask, here, -1)
            *summary, x = entries.exponentials(x, block.bias, here)
        else:
            summary = entries.summary(x, hidden_terms, block.bias, block.terms)
        kept.append(x)
        summaries.append(summary)
        rows = after(rows, summary[1])  # only now the next block is begun
    tops, masses, *totals = (ops.stack(x, axis=-1) for x in zip(*summaries, strict=True))
    *selected, selected_bias = selected
    selected = tile_entries.biased_scores(  # [R, S]
        options, selected[0], hidden_terms, selected_bias, selected[1:]
    )
    slopes = tile_entries.cap_slopes(options, selected)
    if column_mask is not None:
        selected = ops.where(column_mask, selected, ops.full_like(selected, -math.inf))
    top = ops.max(tops, axis=-1)
    mass = ops.sum(masses * ops.exp(tops - top[:, None]), axis=-1)
    if keeps_exponentials:
        others = mass
        mass = others + ops.sum(ops.exp(selected - top[:, None]), axis=-1)
    log_normalizer = top + ops.log(mass)  # [R]
    numerator = selected[:, 0] if num_columns == 1 else ops.logsumexp(selected, axis=-1)  # [R]
    component = ops.reshape(numerator - log_normalizer, (-1, num_contexts))  # [T, K]
    if log_priors is not None:
        component = component + log_priors
    log_probs = component[:, 0] if num_contexts == 1 else ops.logsumexp(component, axis=-1)  # [T]

    losses = -log_probs
    wide = ops.cast(hidden, accumulator)
    if smoothing:
        if mean_label is None:
            means = ops.sum(totals[0], axis=-1) / num_labels
        else:  # the mean of inner products is that with the mean
            means = ops.matmul(wide, mean_label[0]) + mean_label[1]
        uniform = log_normalizer - means
        losses = (1 - smoothing) * losses + smoothing * uniform
    if z_loss:
        squares = ops.reshape(ops.square(log_normalizer), (-1, num_contexts))
        losses = losses + z_loss * ops.mean(squares, -1)
    responsibility = ops.exp(component - log_probs[:, None])  # [T, K], 1 where K = 1
    shares = ops.ones_like(selected)  # [R, S]
    posteriors = None
    if num_columns > 1:
        shares = ops.exp(selected - numerator[:, None])
        posteriors = ops.reshape(shares, (-1, num_contexts, num_columns))
        posteriors = ops.sum(responsibility[..., None] * posteriors, axis=1)  # [T, S]
    if d_labels is None:
        return Walk(losses, log_probs, posteriors, None)

    # d loss / d scores = row_weights (dense probabilities - shares - smoothing / M): the factor
    # goes into the thin operands.
    row_weights = ops.reshape(weights[:, None] * responsibility, (-1,))  # [R]
    shares, dense = (1 - smoothing) * shares, ops.ones_like(log_normalizer)
    extra = smoothing + 2 * z_loss / num_contexts * log_normalizer
    if z_loss:
        row_weights = ops.repeat(weights, num_contexts, axis=0)
        shares = shares * ops.reshape(responsibility, (-1, 1))
        dense = (1 - smoothing) * ops.reshape(responsibility, (-1,)) + extra
    d_hidden, hidden_sums, vectors = [], [], []
    for k, block in enumerate(blocks):
        factors, of_hidden = row_weights, ()
        if keeps_exponentials:
            derivative = kept[k]
            factors = factors * dense * ops.exp(tops[:, k] - log_normalizer)
            low = ops.cast(factors, derivative.dtype)
            of_labels = () if block.bias is None else (ops.matmul(low, derivative),)
        else:
            derivative, of_hidden, of_labels = entries.derivatives(
                kept[k],
                hidden_terms,
                block.bias,
                block.terms,
                columns - block.start,
                shares,
                log_normalizer,
                dense,
                row_weights,
                smoothing / num_labels,
            )
        kept[k] = None  # which eagerly frees it
        part = ops.cast(matrix_product(derivative, block.labels), accumulator)
        d_hidden.append(part * factors[:, None])
        hidden_sums.append(of_hidden)
        vectors.append([ops.cast(x, accumulator) for x in of_labels])
        # One product after the other, each with all cores: faster than both at once.
        weighted = after(ops.cast(wide * factors[:, None], hidden.dtype), d_hidden[-1])
        part = ops.cast(matrix_product(derivative, weighted, transpose_a=True), accumulator)
        total = d_labels.add_block(total, block.start, part)
        log_normalizer = after(log_normalizer, total)  # only now the next block is begun
    d_hidden = sum(d_hidden)
    hidden_sums = [sum(parts) * row_weights for parts in zip(*hidden_sums, strict=True)]
    d_hidden = options.score.hidden_gradients(d_hidden, hidden_sums, hidden, hidden_terms)
    vectors = [ops.concatenate(parts) for parts in zip(*vectors, strict=True)]
    if keeps_exponentials:  # which are 0 for the targets
        # probability - share = -share * the others' probability: no difference of two near 1.
        derivative = -shares * (others / mass)[:, None]
        derivative += extra[:, None] * ops.exp(selected - log_normalizer[:, None])
        derivative *= row_weights[:, None] * slopes
        more, targets, d_targets, of_targets = _target_gradients(
            derivative, hidden, labels, columns, num_contexts, options.score
        )
        d_hidden = d_hidden + more
        total = d_labels.add_rows(total, targets, d_targets)
        vectors = [x + ops.segment_sum(of_targets, targets, num_labels) for x in vectors]
    if mean_label is not None:
        smoothed = -smoothing * row_weights
        d_hidden = d_hidden + smoothed[:, None] * mean_label[0]
        vectors = [x + ops.sum(smoothed) / num_labels for x in vectors]
        vectors.append(ops.matmul(smoothed, wide) / num_labels)
    d_hidden = ops.reshape(d_hidden, (-1, num_contexts, width))
    gradients = (d_hidden, -weights[:, None] * responsibility, *vectors, total)
    return Walk(losses, log_probs, posteriors, gradients)


def _target_gradients(derivative, hidden, labels, columns, num_contexts, score):
    """Gradients through the targets' own scores, where `derivative` `[R, S]` is the loss's.

    Returns:
        The contexts' `[R, d]`; then, added up over a token's contexts, the numbers of the labels
        `[T * S]`, the labels' gradients `[T * S, d]` and the derivatives themselves `[T * S]`.
    """
    d_hidden, d_targets, _ = score.pair_gradients(
        derivative, hidden, ops.take(labels, columns, axis=0), ()
    )
    num_columns, width = d_targets.shape[1:]

    def by_token(x):
        return ops.reshape(x, (-1, num_contexts, num_columns, *x.shape[2:]))

    targets = ops.reshape(by_token(columns)[:, 0], (-1,))
    d_targets = ops.reshape(ops.sum(by_token(d_targets), axis=1), (-1, width))
    return d_hidden, targets, d_targets, ops.reshape(ops.sum(by_token(derivative), axis=1), (-1,))


def _finish(d_labels, total, label_sums, even, blocks, score):
    """The whole gradients of labels and score parameters, from their sums over all tiles.

    `even` is None, or what every label's gradient has besides, `[d]`.
    """
    d_parameters = []
    for block in blocks:
        end = block.start + block.labels.shape[0]
        more, of_parameters = score.label_gradients(
            d_labels.matrix(total)[block.start : end],
            [after(x, total)[block.start : end] for x in label_sums],
            block.labels,
            block.terms,
        )
        d_parameters.append(of_parameters)
        if even is not None:
            more = ops.broadcast_to(even, block.labels.shape)
        if more is not None:
            for x in of_parameters:
                total = after(total, x)  # which is made of what changes now
            total = d_labels.add_block(total, block.start, more)
    d_parameters = [ops.concatenate(parts) for parts in zip(*d_parameters, strict=True)]
    return total, d_parameters


def _select(selected, products, columns, block):
    """Products, terms and bias (or None) of every row's columns, `[R, S]` each, block by block."""
    size = block.labels.shape[0]
    here = columns - block.start
    inside = ops.logical_and(here >= 0, here < size)
    here = ops.clip(here, 0, size - 1)
    found = [ops.take_along_axis(products, here, axis=-1)]
    found += [None if v is None else ops.take(v, here) for v in (*block.terms, block.bias)]
    if selected is None:
        return found
    pairs = zip(found, selected, strict=True)
    return [None if a is None else ops.where(inside, a, b) for a, b in pairs]
