"""Senses: several embeddings a word, and how many each word has."""

from keras_drill.senses.sense_allocation import SenseAllocation
from keras_drill.senses.sense_embedding import SenseEmbedding
from keras_drill.senses.sense_reallocator import SenseReallocator

__all__ = ["SenseAllocation", "SenseEmbedding", "SenseReallocator"]
