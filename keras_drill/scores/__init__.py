"""Scores, which compare context vectors with labels."""

from keras_drill.scores.inner_product import InnerProduct
from keras_drill.scores.kerbs_kernel import KerBSKernel
from keras_drill.scores.score import Score

__all__ = ["InnerProduct", "KerBSKernel", "Score"]
