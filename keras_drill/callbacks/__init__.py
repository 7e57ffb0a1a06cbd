"""Callbacks for training language models."""

from keras_drill.callbacks.non_monotonic_averaging import NonMonotonicAveraging
from keras_drill.callbacks.reset_state import ResetState

__all__ = ["NonMonotonicAveraging", "ResetState"]
