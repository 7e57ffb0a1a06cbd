"""Compositions turn scores of labels into log-probabilities of words."""

from keras_drill.compositions.composition import Composition
from keras_drill.compositions.softmax import Softmax

__all__ = ["Composition", "Softmax"]
