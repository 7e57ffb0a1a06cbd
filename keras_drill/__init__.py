"""Output layers for neural language generation, on Keras 3."""

from keras_drill import compositions, label_encoders, metrics, scores
from keras_drill.label_encoders import (
    BilinearLabelEncoder,
    DualNonlinearLabelEncoder,
    IdentityLabelEncoder,
    LabelEncoder,
    ResidualLabelEncoder,
)
from keras_drill.models.language_model import LanguageModel
from keras_drill.output_layer import OutputLayer

__version__ = "0.1.0"

__all__ = [
    "BilinearLabelEncoder",
    "DualNonlinearLabelEncoder",
    "IdentityLabelEncoder",
    "LabelEncoder",
    "LanguageModel",
    "OutputLayer",
    "ResidualLabelEncoder",
    "compositions",
    "label_encoders",
    "metrics",
    "scores",
]
