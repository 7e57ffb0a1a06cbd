"""Senses: several embeddings a word, and how many each word has."""

from keras_drill.senses.sense_allocation import SenseAllocation
from keras_drill.senses.sense_embedding import SenseEmbedding

__all__ = ["SenseAllocation", "SenseEmbedding"]
