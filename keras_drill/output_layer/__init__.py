"""`OutputLayer`, which combines a label encoder, a score and a composition, with a fused loss."""

from keras_drill.output_layer.output_layer import OutputLayer

__all__ = ["OutputLayer"]
