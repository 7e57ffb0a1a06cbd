"""Language models small enough to be recomputed at every step."""

import keras
import numpy as np

from keras_drill.label_encoders import ResidualLabelEncoder
from keras_drill.models.awd_lstm import AWDLSTM
from keras_drill.models.gru_language_backbone import GRULanguageBackbone
from keras_drill.models.language_model import LanguageModel
from keras_drill.output_layer import OutputLayer

V = 23


def awd_lstm_with_drill(dtype=None):
    keras.utils.set_random_seed(3)
    backbone = AWDLSTM(V, embedding_dim=5, units=7, num_layers=2, dtype=dtype)
    label_encoder = ResidualLabelEncoder(depth=2, activation="tanh", dropout=0.3, dtype=dtype)
    return _built(backbone, label_encoder, dtype)


def stateful_gru_tied():
    """Carries its state from batch to batch in training."""
    keras.utils.set_random_seed(5)
    backbone = GRULanguageBackbone(
        V, embedding_dim=5, units=7, num_layers=2, stateful=True, batch_size=1
    )
    return _built(backbone)


def _built(backbone, label_encoder=None, dtype=None):
    head = OutputLayer(V, embedding=backbone.embedding, label_encoder=label_encoder, dtype=dtype)
    model = LanguageModel(backbone, head)
    model(np.zeros((1, 1), dtype="int32"))
    random = np.random.default_rng(17)
    for variable in model.trainable_variables:  # distributions far from uniform
        variable.assign(random.normal(scale=0.9, size=variable.shape))
    return model
