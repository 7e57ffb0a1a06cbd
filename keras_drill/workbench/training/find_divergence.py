"""Finds the layer in which a training first had NaN or infinite values."""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_drill.ops.private_interfaces import all_layers
from keras_drill.workbench.training.training import Training


def find_divergence(training: Training) -> str:
    """Repeats a training up to the step that diverged, and checks this step layer by layer.

    The search starts from the last checkpoint. Trainings that do not diverge need no extra time.

    Args:
        training: A new `Training` of the run, before `prepare`. The search writes no files.

    Returns:
        A sentence for the user that names the first layer whose output or gradient is not finite.
    """
    training.prepare()
    first = training.state.step
    try:
        training.repeat_epoch(_Watch(training))
    except _Spoilt as spoilt:
        step = first + spoilt.batch - training.state.batch + 1
        what = first_not_finite(training.model, training.batch(spoilt.batch))
        return f"The first value that is not finite occurred in step {step}: {what}"
    except _WentWell:
        return f"The layer is unknown: repeated from step {first}, the training did not diverge"


class _WentWell(Exception):
    """Raised at the end of an epoch if the losses and gradients of all steps were finite."""


class _Spoilt(Exception):
    """Raised after the first step with a loss or gradient that is not finite.

    Args:
        batch: Number of the step's batch in the epoch.
    """

    def __init__(self, batch: int):
        super().__init__(batch)
        self.batch = batch


class _Watch(keras.callbacks.Callback):
    """Raises `_Spoilt` at the first step with a loss or gradient that is not finite.

    Before, the callback restores the model's variables from before that step. If all steps are
    finite, it raises `_WentWell` at the last step.
    """

    def __init__(self, training: Training):
        super().__init__()
        self.training = training

    def on_train_batch_begin(self, batch, logs=None):
        self._before = [keras.ops.convert_to_numpy(v) for v in self.model.variables]

    def on_train_batch_end(self, batch, logs=None):
        if not (math.isfinite(logs["loss"]) and math.isfinite(self.training.mean_gradient_norm)):
            for variable, value in zip(self.model.variables, self._before, strict=True):
                variable.assign(value)
            raise _Spoilt(batch)
        if batch + 1 == self.params["steps"]:
            raise _WentWell


def first_not_finite(model: keras.Model, batch: tuple) -> str:
    """Names the first value of a step that is not finite: a layer's output, the loss or a gradient.

    Gradients flow from the loss to the inputs, so the first gradient is the one nearest to the
    loss. Do not use the model afterwards, because the function replaces the `call` of its layers.

    Args:
        model: A model with a fused loss.
        batch: Inputs, targets and weights of the step.
    """
    spoilt: list[str] = []
    for layer in all_layers(model):
        vars(layer)["call"] = _watched(layer, spoilt)
    inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(batch)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(inputs, targets, sample_weight=weights, training=True)
    if spoilt:
        return f"the output of the layer {spoilt[0]}"
    if not math.isfinite(loss):
        return f"the loss of the output layer {model.head.path}"
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    for variable, gradient in reversed(list(zip(variables, gradients, strict=True))):
        if gradient is not None and not _is_finite(tf.convert_to_tensor(gradient)):
            return f"the gradient of {variable.path}"
    return "a gradient that is too large for float32 to hold its norm"


def _watched(layer: keras.Layer, spoilt: list[str]) -> Any:
    """Wraps a layer's `call` to append the layer's path to `spoilt` if an output is not finite."""
    call = layer.call

    def watched(*args: Any, **kwargs: Any) -> Any:
        outputs = call(*args, **kwargs)
        if not all(map(_is_finite, keras.tree.flatten(outputs))):
            spoilt.append(layer.path or layer.name)
        return outputs

    return watched


def _is_finite(x: Any) -> bool:
    """Returns False for eager float tensors with NaN or infinite values, otherwise True."""
    if not tf.is_tensor(x) or tf.is_symbolic_tensor(x) or not x.dtype.is_floating:
        return True
    return bool(np.isfinite(np.asarray(tf.cast(x, tf.float64))).all())
