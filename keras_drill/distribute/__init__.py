"""Training on several devices and workers, with `tf.distribute` or `keras.distribution`."""

from keras_drill.distribute.distribute_batches import distribute_batches
from keras_drill.distribute.layout_map import layout_map
from keras_drill.distribute.strategies import STRATEGIES, is_chief, strategy

__all__ = ["STRATEGIES", "distribute_batches", "is_chief", "layout_map", "strategy"]
