"""The output layer: label encoder × score × composition, under one fused loss."""

from keras_drill.output_layer.output_layer import OutputLayer

__all__ = ["OutputLayer"]
