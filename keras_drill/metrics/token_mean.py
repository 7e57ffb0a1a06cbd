from typing import Any

import keras
from keras import ops

from keras_drill.ops.token_weights import token_weights
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class TokenMean(keras.metrics.Metric):
    """Weighted mean of one value per token, over all tokens of all batches.

        mean = Σ weight · value / Σ weight

    `keras.metrics.Mean` first averages over the positions of each sequence, so the tokens in
    batches of short sequences have a larger effect. Here, the mean does not depend on how tokens
    are split into batches. `Perplexity` and `TokenAccuracy` are subclasses.

    The mean is precise for any number of tokens, although a float32 sum of ones stops growing at
    2²⁴. For this, each sum is stored as two numbers, and the second number is the rounding error of
    the first. Under `tf.distribute`, the sums are accumulated over replicas.

    Args:
        name: Name of the metric.
        dtype: Dtype of the sums over tokens; `None` is `keras.config.floatx()`.

    Example:

    >>> import keras_drill
    >>> metric = keras_drill.metrics.TokenMean()
    >>> metric.update_state([[1.0, 5.0]], [[1.0, 0.0]])
    >>> metric.update_state([[4.0, 4.0]])
    >>> float(metric.result())
    3.0

    References:
        - [Knuth, 1997](https://www-cs-faculty.stanford.edu/~knuth/taocp.html), section 4.2.2,
          theorem B: the exact error of a sum
    """

    def __init__(self, name: str = "token_mean", dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")
        self.total_rest = self.add_variable((), "zeros", name="total_rest")
        self.count_rest = self.add_variable((), "zeros", name="count_rest")

    def update_state(self, values: Tensor, sample_weight: Tensor | None = None) -> None:
        """Adds the tokens of a batch to the mean.

        Args:
            values: Numbers `[...]`, one for each token.
            sample_weight: Weights of the tokens, `[...]` or a prefix of that shape, such as one
                weight per sequence. `None` weights all tokens equally. Tokens of weight 0 may have
                any value, also NaN.
        """
        values = ops.cast(values, self.dtype)
        if sample_weight is None:
            self.add(ops.sum(values), ops.size(values))
            return
        weights = token_weights(sample_weight, values, self.dtype)
        products = ops.where(weights == 0, ops.zeros_like(values), weights * values)
        self.add(ops.sum(products), ops.sum(weights))

    def add(self, total: Tensor, count: Tensor) -> None:
        """Adds tokens to the mean, given their sums instead of their values.

        Args:
            total: Sum of weight times value over the tokens, a scalar.
            count: Sum of the weights of the tokens, a scalar.
        """
        _add(self.total, self.total_rest, ops.cast(total, self.dtype))
        _add(self.count, self.count_rest, ops.cast(count, self.dtype))

    def mean(self) -> Tensor:
        """Returns the mean of the tokens so far, a scalar; 0 before the first token."""
        total = ops.add(self.total, self.total_rest)
        return ops.divide_no_nan(total, ops.add(self.count, self.count_rest))

    def result(self) -> Tensor:
        return self.mean()


def _add(total, rest, x) -> None:
    """Adds `x` to `total`, and the rounding error of this addition to `rest`."""
    before = ops.copy(total)
    after = before + x
    added = after - before
    rest.assign_add((before - (after - added)) + (x - added))
    total.assign(after)
