"""Metrics for models that never build the log-probabilities of all words."""

import keras

from keras_drill.metrics.token_accuracy import TokenAccuracy

_ACCURACIES = ("accuracy", "acc", "sparse_categorical_accuracy", "SparseCategoricalAccuracy")
_TOP_5 = ("sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy")
# Keras' own that compare a prediction of all words with the target.
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
    """The metrics of a `LanguageModel`, from its arguments `metrics` and `weighted_metrics`.

    Names of Keras' sparse accuracies become a `TokenAccuracy` of that name.

    Raises:
        ValueError: A metric of Keras wants the log-probabilities of all words.
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
            "`metrics` must do with the log-probability of each target, as a LanguageModel never "
            "builds those of all words. Use keras_drill.metrics.TokenAccuracy(top_k=1) for "
            "accuracies and keras_drill.metrics.Perplexity() for cross-entropies. "
            f"Received: {metric!r}"
        )
    return metric
