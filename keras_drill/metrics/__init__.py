"""Metrics for language models."""

from keras_drill.metrics.perplexity import Perplexity

__all__ = ["Perplexity"]
