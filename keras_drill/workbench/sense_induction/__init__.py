"""Finds senses of words from the states of a pretrained encoder in the words' contexts.

The command is `keras-drill induce-senses`.
"""

from keras_drill.models.text_encoder import TextEncoder, WordContext
from keras_drill.workbench.sense_induction.clusters import find_clusters
from keras_drill.workbench.sense_induction.encode_contexts import encode_contexts
from keras_drill.workbench.sense_induction.induce_senses import induce_senses
from keras_drill.workbench.sense_induction.induced_senses import InducedSenses
from keras_drill.workbench.sense_induction.train_senses import (
    begin_at_clusters,
    make_sense_model,
    train_senses,
)
from keras_drill.workbench.sense_induction.word_contexts import find_contexts, frequent_words

__all__ = [
    "InducedSenses",
    "TextEncoder",
    "WordContext",
    "begin_at_clusters",
    "encode_contexts",
    "find_clusters",
    "find_contexts",
    "frequent_words",
    "induce_senses",
    "make_sense_model",
    "train_senses",
]
