"""Checks and replaces metrics of models that never compute the log-probabilities of all words."""

import keras

from keras_drill.metrics.token_accuracy import TokenAccuracy

_ACCURACIES = ("accuracy", "acc", "sparse_categorical_accuracy", "SparseCategoricalAccuracy")
_TOP_5 = ("sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy")
# Keras' metrics that need the probabilities of all words.
_CLASSES = (
    keras.metrics.Accuracy,
    keras.metrics.BinaryAccuracy,
    keras.metrics.CategoricalAccuracy,
    keras.metrics.SparseCategoricalAccuracy,
    keras.metrics.TopKCategoricalAccuracy,
    keras.metrics.SparseTopKCategoricalAccuracy,
    keras.metrics.BinaryCrossentropy,
    keras.metrics.CategoricalCrossentropy,
    keras.metrics.SparseCategoricalCrossentropy,
)
_FUNCTIONS = (
    keras.metrics.binary_accuracy,
    keras.metrics.categorical_accuracy,
    keras.metrics.sparse_categorical_accuracy,
    keras.metrics.top_k_categorical_accuracy,
    keras.metrics.sparse_top_k_categorical_accuracy,
    keras.metrics.binary_crossentropy,
    keras.metrics.categorical_crossentropy,
    keras.metrics.sparse_categorical_crossentropy,
)


def compiled_metrics(*given) -> list | None:
    """Checks the metrics of a `LanguageModel`, and returns them as one list.

    The function replaces the names of Keras' sparse accuracies by a `TokenAccuracy` of the same
    name.

    Args:
        *given: The arguments `metrics` and `weighted_metrics` of `compile`.

    Returns:
        A list of metrics, or `None` if there are none.

    Raises:
        ValueError: A metric of Keras needs the log-probabilities of all words.
    """
    metrics = []
    for group in given:
        if group is not None:
            metrics += list(group) if isinstance(group, (list, tuple)) else [group]
    return [_usable(metric) for metric in metrics] or None


def _usable(metric):
    if isinstance(metric, str) and metric in _ACCURACIES:
        return TokenAccuracy(name=metric)
    if isinstance(metric, str) and metric in _TOP_5:
        return TokenAccuracy(top_k=5, name=metric)
    found = keras.metrics.get(metric) if isinstance(metric, str) else metric
    if isinstance(found, _CLASSES) or found in _FUNCTIONS:
        raise ValueError(
            "`metrics` must not need the log-probabilities of all words, because a LanguageModel "
            "computes only those of the targets. Use keras_drill.metrics.TokenAccuracy(top_k=1) "
            "for accuracies and keras_drill.metrics.Perplexity() for cross-entropies. "
            f"Received: {metric!r}"
        )
    return metric
