"""Words with several embeddings (senses), and changes to the number of senses of each word."""

from keras_drill.senses.sense_allocation import SenseAllocation
from keras_drill.senses.sense_embedding import SenseEmbedding
from keras_drill.senses.sense_reallocator import SenseReallocator

__all__ = ["SenseAllocation", "SenseEmbedding", "SenseReallocator"]
