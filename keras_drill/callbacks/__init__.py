"""Callbacks for training language models."""

from keras_drill.callbacks.non_monotonic_averaging import NonMonotonicAveraging
from keras_drill.callbacks.reset_state import ResetState
from keras_drill.callbacks.sense_reallocation import SenseReallocation
from keras_drill.callbacks.translation_scores import TranslationScores

__all__ = ["NonMonotonicAveraging", "ResetState", "SenseReallocation", "TranslationScores"]
