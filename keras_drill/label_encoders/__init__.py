"""Label encoders, which turn word embeddings into labels (output embeddings)."""

from keras_drill.label_encoders.bilinear_label_encoder import BilinearLabelEncoder
from keras_drill.label_encoders.description_label_encoder import DescriptionLabelEncoder
from keras_drill.label_encoders.dual_nonlinear_label_encoder import DualNonlinearLabelEncoder
from keras_drill.label_encoders.folded_label_encoder import FoldedLabelEncoder
from keras_drill.label_encoders.identity_label_encoder import IdentityLabelEncoder
from keras_drill.label_encoders.label_encoder import LabelEncoder
from keras_drill.label_encoders.residual_label_encoder import ResidualLabelEncoder
from keras_drill.label_encoders.residual_network import ResidualNetwork

__all__ = [
    "BilinearLabelEncoder",
    "DescriptionLabelEncoder",
    "DualNonlinearLabelEncoder",
    "FoldedLabelEncoder",
    "IdentityLabelEncoder",
    "LabelEncoder",
    "ResidualLabelEncoder",
    "ResidualNetwork",
]
