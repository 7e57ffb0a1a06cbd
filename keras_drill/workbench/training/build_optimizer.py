"""The optimizer of a run, and its learning rate."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import keras
import numpy as np

from keras_drill.data import ContiguousBatches
from keras_drill.ops.replicas import num_replicas
from keras_drill.optimizers import SequenceLengthSchedule, WarmupSchedule
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.task import Batches

LearningRate: TypeAlias = Any  # a number, or a keras.optimizers.schedules.LearningRateSchedule


def build_optimizer(config: RunConfig, batches: Batches) -> keras.optimizers.Optimizer:
    """Builds the optimizer of a run.

    For NT-ASGD the optimizer is SGD, and the callback `NonMonotonicAveraging` averages the weights.
    """
    options = config.optimizer
    arguments = {
        "learning_rate": step_learning_rate(config, batches),
        "weight_decay": options.weight_decay or None,
        "global_clipnorm": options.clip_norm or None,
        "gradient_accumulation_steps": None
        if options.accumulate_steps == 1
        else options.accumulate_steps,
    }
    if options.kind == "adam":
        return keras.optimizers.Adam(**arguments, beta_2=options.beta_2)
    return keras.optimizers.SGD(**arguments)


def step_learning_rate(config: RunConfig, batches: Batches, factor: float = 1.0) -> LearningRate:
    """Returns the learning rate of each step.

    With `optimizer.scale_with_length`, the rate is proportional to the sequence length of the step
    if sequence lengths vary.

    Args:
        config: the options.
        batches: the batches of the training.
        factor: factor of the learning rate, from `validation_factor`.
    """
    rate = learning_rate(config, batches.num_batches, factor)
    if (
        config.optimizer.scale_with_length
        and isinstance(batches, ContiguousBatches)
        and batches.variable_length
    ):
        lengths = [batches.lengths(epoch) for epoch in range(config.training.epochs)]
        return SequenceLengthSchedule(rate, np.concatenate(lengths), batches.sequence_length)
    return rate


def learning_rate(config: RunConfig, num_batches: int, factor: float = 1.0) -> LearningRate:
    """Returns the learning rate without scaling by sequence length.

    A constant rate is a number, any other rate is a Keras schedule.
    """
    options = config.optimizer
    peak = options.learning_rate * factor
    if options.schedule == "constant" and not options.warmup_steps:
        return peak
    last = config.training.epochs * num_batches
    return WarmupSchedule(
        peak,
        options.warmup_steps,
        options.schedule,
        options.decay_steps or max(last - options.warmup_steps, 1),
        options.final_share,
    )


def validation_factor(config: RunConfig, losses: Sequence[float]) -> float:
    """Returns the factor by which `optimizer.validation_decay` has reduced the learning rate.

    The factor depends only on the validation losses, so a resumed run uses the same learning rate.

    Example:

    >>> from keras_drill.workbench.tasks.load_config import load_config
    >>> config = load_config("small-kerbs").replace({"optimizer.validation_decay": 0.5})
    >>> [validation_factor(config, [5.0, 4.0, 4.5, 4.2, 3.9][:n]) for n in range(6)]
    [1.0, 1.0, 1.0, 0.5, 0.25, 0.25]
    """
    options = config.optimizer
    best, waited, factor = np.inf, 0, 1.0
    for loss in losses:
        waited = 0 if loss < best else waited + 1
        best = min(best, loss)
        if waited == options.validation_patience:
            waited, factor = 0, factor * options.validation_decay
    return factor


def record_gradient_norm(
    optimizer: keras.optimizers.Optimizer, norm: keras.metrics.Metric
) -> keras.optimizers.Optimizer:
    """Makes the optimizer record the norm of the whole gradient, before clipping, in a metric.

    The optimizer's class and configuration do not change, so a saved model needs no class of this
    package to load its optimizer.

    Returns:
        The same optimizer.
    """
    apply = optimizer.apply

    def recorded(grads, trainable_variables=None):
        squares = [
            keras.ops.sum(keras.ops.square(keras.ops.cast(grad, "float32")))
            for grad in map(keras.ops.convert_to_tensor, (g for g in grads if g is not None))
        ]
        # Stacked, because TensorFlow may reorder a chain of additions differently in each process.
        total = keras.ops.sum(keras.ops.stack(squares))
        # Every replica has the norm of the whole gradient. The weights sum to 1 over the replicas.
        norm.update_state(keras.ops.sqrt(total), sample_weight=1 / num_replicas())
        return apply(grads, trainable_variables)

    optimizer.apply = recorded
    return optimizer
