"""Backbones of language models and encoder–decoders, their evaluation, and text encoders."""

from keras_drill.models.awd_lstm import AWDLSTM
from keras_drill.models.dynamic_evaluation import DynamicEvaluator, gradient_mean_squares
from keras_drill.models.gru_language_backbone import GRULanguageBackbone
from keras_drill.models.make_stateless import make_stateless, with_batch_size
from keras_drill.models.neural_cache import add_neural_cache
from keras_drill.models.recurrent_encoder_decoder import RecurrentEncoderDecoder
from keras_drill.models.text_encoder import TextEncoder
from keras_drill.models.transformer import Transformer, TransformerLanguageBackbone

__all__ = [
    "AWDLSTM",
    "DynamicEvaluator",
    "GRULanguageBackbone",
    "RecurrentEncoderDecoder",
    "TextEncoder",
    "Transformer",
    "TransformerLanguageBackbone",
    "add_neural_cache",
    "gradient_mean_squares",
    "make_stateless",
    "with_batch_size",
]
