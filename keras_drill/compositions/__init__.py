"""Compositions, which turn scores of labels into log-probabilities of words."""

from keras_drill.compositions.composition import Composition
from keras_drill.compositions.mixture import Mixture
from keras_drill.compositions.multi_sense import MultiSense
from keras_drill.compositions.softmax import Softmax

__all__ = ["Composition", "Mixture", "MultiSense", "Softmax"]
