"""Scores as the composition sees them, entry by entry of a tile's inner products."""

from keras import ops


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
