"""Language models and their backbones."""

from keras_drill.models.awd_lstm import AWDLSTM
from keras_drill.models.gru_language_backbone import GRULanguageBackbone

__all__ = ["AWDLSTM", "GRULanguageBackbone"]
