"""The one routine behind every loss: a walk over tiles of tokens.

Shape letters:
    N tokens, K contexts per token, M labels, S columns that make up a target,
    T tokens per tile, R = T * K rows per tile, d width of the joint space.
"""

import math
from typing import Any, NamedTuple

from keras import ops

DEFAULT_TILE_BYTES = 64 * 2**20
# A tile's share of the labels' gradient is made and added in blocks of about this size.
LABEL_BLOCK_BYTES = 64 * 2**20


class WalkOptions(NamedTuple):
    """What the walk needs to know besides its tensors.

    Attributes:
        score: The `keras_drill.scores.Score` that compares contexts with labels.
        compute_dtype: Dtype of the matrix products. Everything else is `accumulator_dtype`.
        label_smoothing: Share of the target's probability that is spread over all labels.
        logit_soft_cap: `c` in `c * tanh(scores / c)`, or `None`.
        z_loss: Coefficient of the squared log-normaliser.
        tile_size: Tokens per tile, or `None` to derive it from `tile_bytes`.
        tile_bytes: Memory that one tile of scores may take, in bytes.
    """

    score: Any
    compute_dtype: str = "float32"
    label_smoothing: float = 0.0
    logit_soft_cap: float | None = None
    z_loss: float = 0.0
    tile_size: int | None = None
    tile_bytes: int | None = None

    @property
    def accumulator_dtype(self) -> str:
        return "float64" if self.compute_dtype == "float64" else "float32"


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


def tile_count(num_tokens, num_contexts: int, num_labels: int, options: WalkOptions):
    """Number of tiles that `num_tokens` (an int or a scalar tensor) are cut into."""
    tokens_per_tile = options.tile_size
    if tokens_per_tile is None:
        score_bytes = 4 * num_contexts * num_labels
        tile_bytes = options.tile_bytes or DEFAULT_TILE_BYTES
        tokens_per_tile = max(1, tile_bytes // score_bytes)
    if isinstance(num_tokens, int):
        return max(1, math.ceil(num_tokens / tokens_per_tile))
    return ops.maximum(1, (num_tokens + tokens_per_tile - 1) // tokens_per_tile)


def label_blocks(num_labels: int, width: int) -> list[slice]:
    """Slices of the labels, so that no second copy of their whole gradient is ever in memory."""
    count = min(num_labels, math.ceil(4 * num_labels * width / LABEL_BLOCK_BYTES))
    size = math.ceil(num_labels / max(1, count))
    return [slice(start, min(start + size, num_labels)) for start in range(0, num_labels, size)]


def walk(inputs: WalkInputs, options: WalkOptions, weights=None, with_gradients=False) -> Walk:
    """Computes losses, log-probabilities and, if asked, gradients, one tile of tokens at a time.

    With scores `s` of a row and the target's columns `y`,

        log p_k = lse(s_k[y]) - lse(s_k)
        log p   = lse_k(log_prior_k + log p_k)

    and the derivative of `-log p` with respect to a score is *probability - target posterior*:

        r_k (softmax(s_k)_j - q_kj),   q_k = softmax(s_k[y]),   r = posterior over contexts.

    Never more than one tile of scores and one of probabilities is alive.

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
    if isinstance(num_tokens, int):
        tile = math.ceil(num_tokens / num_tiles)  # tiles of equal size: little padding
    else:
        tile = (num_tokens + num_tiles - 1) // num_tiles
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
        """Puts the tokens that count first, pads to whole tiles and clears all but those."""
        if x is None:
            return None
        x = x if dtype is None else ops.cast(x, dtype)
        x = x if order is None else ops.take(x, order, axis=0)
        x = ops.pad(x, [(0, padded - num_tokens)] + [(0, 0)] * (len(x.shape) - 1))
        return ops.where(
            ops.reshape(counted, (-1,) + (1,) * (len(x.shape) - 1)), x, ops.zeros_like(x)
        )

    def restore(x):
        """Undoes `arrange`."""
        x = x[:num_tokens]
        return x if order is None else ops.take(x, ops.argsort(order), axis=0)

    contexts = arrange(inputs.contexts, options.compute_dtype)  # [padded, K, d]
    log_priors = arrange(inputs.log_priors, accumulator)  # [padded, K]
    columns = arrange(inputs.columns, "int32")  # [padded, S]
    column_mask = arrange(inputs.column_mask)
    if column_mask is not None:  # a token that does not count has one column, not none
        column_mask = ops.logical_or(column_mask, ~counted[:, None])
    weights = arrange(weights if weights is not None else ops.ones((num_tokens,), accumulator))
    labels = ops.cast(inputs.labels, options.compute_dtype)
    bias = None if inputs.bias is None else ops.cast(inputs.bias, accumulator)
    parameters = tuple(ops.cast(p, accumulator) for p in inputs.score_parameters)

    def body(index, *carry):
        start = index * tile

        def rows(x, *tail):
            return ops.slice(x, [start] + [0] * len(tail), [tile, *tail])

        def put(x, update):
            update = ops.cast(update, x.dtype)
            return ops.slice_update(x, [start] + [0] * (len(x.shape) - 1), update)

        result = _one_tile(
            rows(contexts, num_contexts, width),
            None if log_priors is None else rows(log_priors, num_contexts),
            rows(columns, num_columns),
            None if column_mask is None else rows(column_mask, num_columns),
            rows(weights),
            labels,
            bias,
            parameters,
            options,
            with_gradients,
        )
        losses, log_probs, *gradients = carry
        carry = [put(losses, result.losses), put(log_probs, result.log_probs)]
        if num_columns > 1:
            carry.append(put(gradients.pop(0), result.posteriors))
        if with_gradients:
            d_contexts, d_log_priors, *sums = gradients
            carry.append(put(d_contexts, result.gradients[0]))
            carry.append(put(d_log_priors, result.gradients[1]))
            carry += [total + part for total, part in zip(sums, result.gradients[2:], strict=True)]
        # TensorFlow starts up to ten iterations at once. The counter waits for the sums, so that
        # the next tile is not begun, nor in memory, before this one is done.
        finished = ops.stack([ops.ravel(x[:1])[0] for x in carry])
        never = ops.any(ops.logical_and(finished < 0, finished > 0))
        return index + 1 + ops.cast(never, "int32"), *carry

    # Computed, or TensorFlow would keep a constant of every accumulator's size.
    zero = ops.sum(ops.cast(columns[:1] < 0, accumulator))
    blocks = label_blocks(num_labels, width)
    carry = [ops.zeros((padded,), accumulator), ops.zeros((padded,), accumulator)]
    carry += [ops.zeros((padded, num_columns), accumulator)] if num_columns > 1 else []
    if with_gradients:
        carry.append(ops.zeros((padded, num_contexts, width), accumulator))
        carry.append(ops.zeros((padded, num_contexts), accumulator))
        carry += [] if bias is None else [ops.zeros((num_labels,), accumulator)]
        for block in blocks:
            size = block.stop - block.start
            carry.append(ops.broadcast_to(zero, (size, width)))
            carry += [ops.broadcast_to(zero, (size,)) for _ in parameters]
    if order is not None:
        num_tiles = (num_counted + ops.maximum(tile, 1) - 1) // ops.maximum(tile, 1)
    _, losses, log_probs, *gradients = ops.while_loop(
        lambda index, *_: index < num_tiles, body, (ops.zeros((), "int32"), *carry)
    )

    posteriors = gradients.pop(0) if num_columns > 1 else None
    if with_gradients:
        if scale is not None:
            gradients = [gradient * scale for gradient in gradients]
        d_contexts, d_log_priors, *sums = gradients
        d_bias = None if bias is None else sums.pop(0)
        stride = 1 + len(parameters)
        gradients = (
            restore(d_contexts),
            None if log_priors is None else restore(d_log_priors),
            ops.concatenate(sums[::stride]),
            d_bias,
            *[ops.concatenate(sums[i::stride]) for i in range(1, stride)],
        )
    counted = ops.cast(counted, accumulator)
    return Walk(
        restore(losses * counted),
        restore(log_probs * counted),
        None if posteriors is None else restore(posteriors * counted[:, None]),
        gradients if with_gradients else None,
    )


def _one_tile(
    contexts,
    log_priors,
    columns,
    column_mask,
    weights,
    labels,
    bias,
    parameters,
    options,
    with_gradients,
) -> Walk:
    """The walk's body: `[T, K, d]` contexts against all labels.

    Its gradients are for contexts, log-priors, the bias if any and, block by block, for the labels
    and the score's parameters.
    """
    num_contexts, width = contexts.shape[1:]
    num_columns = columns.shape[1]
    hidden = ops.reshape(contexts, (-1, width))  # [R, d]
    columns = ops.repeat(columns, num_contexts, axis=0)  # [R, S]

    scores, residual = options.score.forward(hidden, labels, parameters)  # [R, M]
    if bias is not None:
        scores = scores + bias
    cap = options.logit_soft_cap
    if cap is not None:
        scores = cap * ops.tanh(scores / cap)
    probabilities = ops.softmax(scores)
    # The largest probability is at least 1/M, so its logarithm is safe where a target's is not.
    log_normalizer = ops.max(scores, -1) - ops.log(ops.max(probabilities, -1))  # [R]
    selected = ops.take_along_axis(scores, columns, axis=-1)  # [R, S]
    if column_mask is not None:
        column_mask = ops.repeat(column_mask, num_contexts, axis=0)
        selected = ops.where(column_mask, selected, ops.full_like(selected, -math.inf))
    numerator = selected[:, 0] if num_columns == 1 else ops.logsumexp(selected, axis=-1)  # [R]
    component = ops.reshape(numerator - log_normalizer, (-1, num_contexts))  # [T, K]
    if log_priors is not None:
        component = component + log_priors
    log_probs = component[:, 0] if num_contexts == 1 else ops.logsumexp(component, axis=-1)  # [T]

    smoothing, z_loss = options.label_smoothing, options.z_loss
    losses = -log_probs
    if smoothing:
        uniform = log_normalizer - ops.mean(scores, -1)
        losses = (1 - smoothing) * losses + smoothing * uniform
    if z_loss:
        squares = ops.reshape(ops.square(log_normalizer), (-1, num_contexts))
        losses = losses + z_loss * ops.mean(squares, -1)
    responsibility = ops.exp(component - log_probs[:, None])  # [T, K], 1 where K = 1
    column_posteriors = posteriors = None
    if num_columns > 1:
        column_posteriors = ops.exp(selected - numerator[:, None])  # [R, S]
        posteriors = responsibility[..., None] * ops.reshape(
            column_posteriors, (-1, num_contexts, num_columns)
        )
        posteriors = ops.sum(posteriors, axis=1)  # [T, S]
    if not with_gradients:
        return Walk(losses, log_probs, posteriors, None)

    row_weights = ops.reshape(weights[:, None] * responsibility, (-1,))  # [R]
    # d loss / d scores = row_weights * derivative: the factor goes into the thin operands.
    derivative, target_share = probabilities, 1 - smoothing
    if z_loss:
        row_weights = ops.repeat(weights, num_contexts, axis=0)
        target_share = target_share * ops.reshape(responsibility, (-1,))
        dense = target_share + smoothing + 2 * z_loss / num_contexts * log_normalizer
        derivative = derivative * dense[:, None]
    if smoothing:
        derivative = derivative - smoothing / labels.shape[0]
    row = ops.arange(ops.shape(hidden)[0], dtype="int32")
    for s in range(num_columns):
        posterior = target_share * ops.ones_like(numerator)
        if num_columns > 1:
            posterior = target_share * column_posteriors[:, s]
        value = ops.take_along_axis(derivative, columns[:, s : s + 1], axis=-1)[:, 0] - posterior
        where = ops.stack([row, columns[:, s]], axis=-1)
        derivative = ops.scatter_update(derivative, where, value)
    if cap is not None:
        derivative = derivative * (1 - ops.square(scores / cap))

    d_hidden, sums = 0.0, []
    if bias is not None:
        sums.append(ops.einsum("r,rm->m", row_weights, derivative))
    for block in label_blocks(*labels.shape):
        part, d_labels, d_parameters = options.score.gradients(
            derivative[:, block],
            row_weights,
            hidden,
            labels[block],
            tuple(p[block] for p in parameters),
            None if residual is None else residual[:, block],
        )
        d_hidden = d_hidden + part
        sums += [d_labels, *d_parameters]
    d_hidden = ops.reshape(d_hidden, (-1, num_contexts, width))
    return Walk(
        losses, log_probs, posteriors, (d_hidden, -weights[:, None] * responsibility, *sums)
    )
