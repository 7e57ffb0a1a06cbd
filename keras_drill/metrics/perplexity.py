import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_drill")
class Perplexity(keras.metrics.Metric):
    """`exp` of the mean negative log-probability of the targets, over all batches.

    Takes what either kind of model predicts: log-probabilities of all words `[..., V]` (plain Keras
    models with an `OutputLayer`; logits are normalised), or the target's alone `[...]` (what a
    `LanguageModel` gives its metrics). In a `LanguageModel` tokens count by their sample weight.

    Args:
        name: Name of the metric.
        dtype: Dtype of the sums.

    Example:

    >>> metric = keras_drill.metrics.Perplexity()
    >>> targets, log_probs = np.array([[3, 1]]), np.log([[0.25, 0.25]])
    >>> metric.update_state(targets, log_probs)
    >>> round(float(metric.result()), 3)
    4.0
    """

    def __init__(self, name="perplexity", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch.

        Args:
            y_true: Target words `[...]`.
            y_pred: Log-probabilities of the targets `[...]`, or of all words `[..., V]`.
            sample_weight: Weights of the tokens, `[...]` or a prefix of that shape.
        """
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if len(y_pred.shape) == len(y_true.shape) + 1:
            y_pred = -keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        elif len(y_pred.shape) != len(y_true.shape):
            raise ValueError(
                "`y_pred` must have the shape of `y_true`, or one more axis of words. Received: "
                f"y_pred of shape {tuple(y_pred.shape)}, y_true of shape {tuple(y_true.shape)}"
            )
        losses = -ops.cast(y_pred, self.dtype)
        weights = ops.ones_like(losses)
        if sample_weight is not None:
            weights = ops.cast(sample_weight, self.dtype)
            for _ in range(len(losses.shape) - len(weights.shape)):
                weights = ops.expand_dims(weights, -1)
            weights = ops.broadcast_to(weights, ops.shape(losses))
        self.total.assign_add(ops.sum(ops.where(weights == 0, 0.0, weights * losses)))
        self.count.assign_add(ops.sum(weights))

    def result(self):
        return ops.exp(ops.divide_no_nan(self.total, self.count))
