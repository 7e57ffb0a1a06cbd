"""Computes scores with biases and soft caps from a tile's inner products, element by element."""

from keras import ops

from keras_drill.fused_loss.label_shard import NEVER
from keras_drill.ops.saturated import saturated


def biased_scores(options, products, hidden_terms, bias, label_terms, exists=None):
    """Computes scores from inner products: adds the bias and applies the soft cap.

    The score of padding labels is `NEVER`, a large negative number whose exponential is 0.
    """
    products = saturated(products, options.accumulator_dtype)
    scores = options.score.of_products(products, hidden_terms, label_terms)
    if bias is not None:
        scores = scores + bias
    cap = options.logit_soft_cap
    scores = scores if cap is None else cap * ops.tanh(scores / cap)
    return scores if exists is None else ops.where(exists, scores, NEVER)


def cap_slopes(options, scores):
    """Returns the derivatives of capped scores with respect to the scores before the cap."""
    cap = options.logit_soft_cap
    return 1.0 if cap is None else 1 - ops.square(scores / cap)
