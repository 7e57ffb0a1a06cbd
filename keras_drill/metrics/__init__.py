"""Metrics for language models, and scores of generated texts."""

from keras_drill.metrics.perplexity import Perplexity
from keras_drill.metrics.text_scores import TextScores, count_words, distinct_n, score_texts
from keras_drill.metrics.token_accuracy import TokenAccuracy
from keras_drill.metrics.token_mean import TokenMean

__all__ = [
    "Perplexity",
    "TextScores",
    "TokenAccuracy",
    "TokenMean",
    "count_words",
    "distinct_n",
    "score_texts",
]
