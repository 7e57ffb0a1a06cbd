"""Senses: several embeddings a word, and how many each word has."""

from keras_drill.senses.sense_allocation import SenseAllocation

__all__ = ["SenseAllocation"]
