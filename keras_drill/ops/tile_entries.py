"""What is made of a tile's inner products entry by entry: scores, their sums, their derivatives.

Every function takes the walk's options first, and is compiled as a whole where that pays. Shape
letters are those of `tile_walk`; B labels make a block.
"""

from keras import ops

from keras_drill.ops.graph import fold_columns


def biased_scores(options, products, hidden_terms, bias, label_terms):
    """Biased and capped scores of products in the compute dtype."""
    products = ops.cast(products, options.accumulator_dtype)
    scores = options.score.of_products(products, hidden_terms, label_terms)
    if bias is not None:
        scores = scores + bias
    cap = options.logit_soft_cap
    return scores if cap is None else cap * ops.tanh(scores / cap)


def cap_slopes(options, scores):
    """Derivatives of capped scores by what they were before."""
    cap = options.logit_soft_cap
    return 1.0 if cap is None else 1 - ops.square(scores / cap)


def summary(options, products, hidden_terms, bias, label_terms):
    """Largest score of every row, sum of the exponentials above it and, to smooth, the scores'."""
    scores = biased_scores(options, products, hidden_terms, bias, label_terms)
    top = ops.max(fold_columns(ops.maximum, scores), axis=-1)
    mass = ops.sum(fold_columns(ops.add, ops.exp(scores - top[:, None])), axis=-1)
    return (top, mass, ops.sum(scores, axis=-1)) if options.label_smoothing else (top, mass)


def exponentials(options, products, bias, columns):
    """As `summary`, but the sum leaves `columns` out; and what is kept of a block, 0 for those.

    That is the exponentials, times the soft cap's slopes.
    """
    scores = biased_scores(options, products, (), bias, ())
    top = ops.max(fold_columns(ops.maximum, scores), axis=-1)
    kept = ops.exp(scores - top[:, None])
    labels = ops.arange(products.shape[1], dtype="int32")
    for s in range(columns.shape[1]):
        kept = ops.where(labels == columns[:, s : s + 1], 0.0, kept)
    kept = ops.cast(kept, options.compute_dtype)
    rounded = ops.cast(kept, options.accumulator_dtype)
    if options.logit_soft_cap is not None:
        kept = ops.cast(rounded * cap_slopes(options, scores), options.compute_dtype)
    return top, ops.sum(rounded, axis=-1), kept


def derivatives(
    options,
    products,
    hidden_terms,
    bias,
    label_terms,
    columns,
    shares,
    log_normalizer,
    dense,
    row_weights,
    smoothed,
):
    """What the gradients need of a block of labels.

    Returns:
        The derivative for the products in the compute dtype, and the score's hidden and label sums
        with the gradient of the bias, if any, as the last of the label sums.
    """
    scores = biased_scores(options, products, hidden_terms, bias, label_terms)
    derivative = ops.exp(scores - log_normalizer[:, None])
    if options.z_loss:
        derivative = derivative * dense[:, None]
    if options.label_smoothing:
        derivative = derivative - smoothed
    labels = ops.arange(products.shape[1], dtype="int32")
    for s in range(columns.shape[1]):
        is_column = labels == columns[:, s : s + 1]
        derivative = derivative - ops.where(is_column, shares[:, s : s + 1], 0.0)
    if options.logit_soft_cap is not None:
        derivative = derivative * cap_slopes(options, scores)
    products = ops.cast(products, derivative.dtype)
    by_products, hidden_sums, label_sums = options.score.product_gradients(
        derivative, row_weights, products, hidden_terms, label_terms
    )
    if bias is not None:
        label_sums = (*label_sums, ops.matmul(row_weights, derivative))
    if options.compute_dtype == "float16":  # a kernel's slope may exceed what float16 can hold
        by_products = ops.clip(by_products, -4096.0, 4096.0)
    return ops.cast(by_products, options.compute_dtype), hidden_sums, label_sums
