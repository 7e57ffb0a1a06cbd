"""Recurrent layers, attention, layers of Transformers, dropout layers and `ContextSpace`."""

from keras_drill.layers.attention import Attention, MultiHeadSourceAttention
from keras_drill.layers.attention_cell import AttentionCell, AttentionRNN
from keras_drill.layers.attention_scores import (
    AdditiveScore,
    AttentionScore,
    AttentionWindow,
    DotScore,
    GeneralScore,
    MonotonicWindow,
    PredictiveWindow,
)
from keras_drill.layers.context_space import ContextSpace
from keras_drill.layers.dropout import Dropout
from keras_drill.layers.embedding_dropout import EmbeddingDropout
from keras_drill.layers.gru import GRU
from keras_drill.layers.lstm import LSTM
from keras_drill.layers.positional_encoding import PositionalEncoding
from keras_drill.layers.transformer_layer import TransformerLayer
from keras_drill.layers.transformer_stack import TransformerStack
from keras_drill.layers.variational_dropout import VariationalDropout

__all__ = [
    "GRU",
    "LSTM",
    "AdditiveScore",
    "Attention",
    "AttentionCell",
    "AttentionRNN",
    "AttentionScore",
    "AttentionWindow",
    "ContextSpace",
    "DotScore",
    "Dropout",
    "EmbeddingDropout",
    "GeneralScore",
    "MonotonicWindow",
    "MultiHeadSourceAttention",
    "PositionalEncoding",
    "PredictiveWindow",
    "TransformerLayer",
    "TransformerStack",
    "VariationalDropout",
]
