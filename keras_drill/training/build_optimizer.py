"""The optimizer of a run."""

import keras
import numpy as np

from keras_drill.data import ContiguousBatches
from keras_drill.optimizers import SequenceLengthSchedule
from keras_drill.training.config import RunConfig


def build_optimizer(config: RunConfig, batches: ContiguousBatches) -> keras.optimizers.Optimizer:
    """Makes the optimizer; NT-ASGD is SGD here, and a callback that averages."""
    options = config.optimizer
    arguments = {
        "learning_rate": options.learning_rate,
        "weight_decay": options.weight_decay or None,
        "global_clipnorm": options.clip_norm or None,
    }
    if options.scale_with_length and config.data.variable_length:
        lengths = [batches.lengths(epoch) for epoch in range(config.training.epochs)]
        arguments["learning_rate"] = SequenceLengthSchedule(
            options.learning_rate, np.concatenate(lengths), config.data.sequence_length
        )
    if options.kind == "adam":
        return keras.optimizers.Adam(**arguments)
    return keras.optimizers.SGD(**arguments)
