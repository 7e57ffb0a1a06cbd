from typing import Any

import keras
from keras import ops

from keras_drill.metrics.token_mean import TokenMean
from keras_drill.ops.check_sizes import check_sizes
from keras_drill.ops.token_weights import same_shape, token_weights
from keras_drill.types import Tensor


@keras.saving.register_keras_serializable(package="keras_drill")
class Perplexity(TokenMean):
    """Perplexity: `exp` of the targets' mean negative log-probability, over all batches.

    The metric takes two kinds of predictions, where `[...]` is the shape of the targets. A
    `LanguageModel` passes the log-probabilities of the targets, `[...]`. A plain Keras model with
    an `OutputLayer` passes the log-probabilities of all V words, `[..., V]`. Predictions for all
    words may also be logits, which the metric normalises.

    In a `LanguageModel`, the mean is weighted by sample weights, and masked tokens are ignored. A
    plain Keras model passes no mask to its metrics. There, give padding the weight 0 by
    `sample_weight`, and pass the metric to `compile` in `weighted_metrics`.

    Callbacks such as `keras.callbacks.EarlyStopping("val_perplexity")` recognise that a lower
    perplexity is better.

    Args:
        name: Name of the metric.
        dtype: Dtype of the sums over tokens; `None` is `keras.config.floatx()`.

    Example:

    >>> import keras_drill
    >>> import numpy as np
    >>> metric = keras_drill.metrics.Perplexity()
    >>> targets, log_probs = np.array([[3, 1]]), np.log([[0.25, 0.25]])
    >>> metric.update_state(targets, log_probs)
    >>> round(float(metric.result()), 3)
    4.0
    """

    def __init__(self, name: str = "perplexity", dtype: Any = None):
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"  # Keras' callbacks read this attribute

    def update_state(  # type: ignore[override]  # Keras passes targets and predictions
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Adds the tokens of a batch to the mean.

        Args:
            y_true: Ids of the target words, integers `[...]` or `[..., 1]`.
            y_pred: Log-probabilities of the targets `[...]`, or of all words `[..., V]`.
            sample_weight: Weights of the tokens, `[...]` or a prefix of that shape, such as one
                weight per sequence. `None` weights all tokens equally. Tokens of weight 0 may have
                any target.
        """
        y_true, y_pred = targets_and_predictions(y_true, y_pred)
        if len(y_pred.shape) == len(y_true.shape) + 1:
            if sample_weight is not None:
                sample_weight = token_weights(sample_weight, y_true, self.dtype)
                y_true = ops.where(sample_weight == 0, ops.zeros_like(y_true), y_true)
            y_pred = -keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        super().update_state(-ops.cast(y_pred, self.dtype), sample_weight)

    def result(self) -> Tensor:
        return ops.exp(self.mean())


def targets_and_predictions(y_true, y_pred) -> tuple:
    """Checks shapes, and returns targets `[...]` and predictions `[...]` or `[..., V]` as tensors.

    Raises:
        ValueError: The shapes do not match, or `y_pred` is `None`.
    """
    if y_pred is None:
        raise ValueError(
            "`y_pred` must be log-probabilities. In your own `train_step`, return "
            "`self.get_metrics_result()`: `LanguageModel.compute_loss` has updated the metrics "
            "already. Received: y_pred=None"
        )
    y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
    targets, predicted = tuple(y_true.shape), tuple(y_pred.shape)
    over_words = len(predicted) == len(targets) and predicted[-1:] not in ((None,), (1,))
    if targets[-1:] == (1,) and (over_words or len(targets) == len(predicted) + 1):
        y_true = ops.squeeze(y_true, -1)
    rank = len(y_true.shape)
    if len(predicted) not in (rank, rank + 1) or not same_shape(y_true.shape, predicted[:rank]):
        raise ValueError(
            "`y_pred` must have the shape of `y_true` (log-probabilities of the targets), or one "
            "more axis (log-probabilities of all words). "
            f"Received: y_pred of shape {predicted}, y_true of shape {targets}"
        )
    y_true = check_sizes(
        y_true,
        ops.shape(y_pred)[:rank],
        "`y_pred` must have the shape of `y_true` (log-probabilities of the targets), or one more "
        "axis (log-probabilities of all words).",
    )
    return y_true, y_pred
