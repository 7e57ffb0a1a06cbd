"""Output layers for neural language generation, on Keras 3."""

from keras_drill import callbacks, compositions, label_encoders, layers, metrics, models, scores
from keras_drill.label_encoders import (
    BilinearLabelEncoder,
    DualNonlinearLabelEncoder,
    IdentityLabelEncoder,
    LabelEncoder,
    ResidualLabelEncoder,
)
from keras_drill.models.language_model import LanguageModel
from keras_drill.output_layer import OutputLayer
from keras_drill.ready_made import (
    BilinearOutput,
    DrillOutput,
    DualNonlinearOutput,
    SoftmaxOutput,
    TiedOutput,
)

__version__ = "0.1.0"

__all__ = [
    "BilinearLabelEncoder",
    "BilinearOutput",
    "DrillOutput",
    "DualNonlinearLabelEncoder",
    "DualNonlinearOutput",
    "IdentityLabelEncoder",
    "LabelEncoder",
    "LanguageModel",
    "OutputLayer",
    "ResidualLabelEncoder",
    "SoftmaxOutput",
    "TiedOutput",
    "callbacks",
    "compositions",
    "label_encoders",
    "layers",
    "metrics",
    "models",
    "scores",
]
