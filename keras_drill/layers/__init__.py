"""Recurrent layers and the dropouts of language models."""

from keras_drill.layers.embedding_dropout import EmbeddingDropout
from keras_drill.layers.gru import GRU
from keras_drill.layers.lstm import LSTM
from keras_drill.layers.variational_dropout import VariationalDropout

__all__ = ["GRU", "LSTM", "EmbeddingDropout", "VariationalDropout"]
