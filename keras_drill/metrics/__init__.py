"""Metrics for language models."""

from keras_drill.metrics.perplexity import Perplexity
from keras_drill.metrics.token_accuracy import TokenAccuracy
from keras_drill.metrics.token_mean import TokenMean

__all__ = ["Perplexity", "TokenAccuracy", "TokenMean"]
