"""Where in the model a training that diverged stopped having numbers."""

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_drill.ops.private_interfaces import all_layers
from keras_drill.workbench.training.training import Training


def find_divergence(training: Training) -> str:
    """Repeats a training up to the step that spoilt it, and looks into that one layer by layer.

    Nothing is spent on this while a training goes well: it begins again at the last checkpoint, as
    if it were resumed.

    Args:
        training: A new one of the run that diverged, not yet prepared. It writes nothing.

    Returns:
        A sentence for the user, that names the first layer whose output or gradient is not finite.
    """
    training.prepare()
    first = training.state.step
    try:
        training.repeat_epoch(_Watch(training))
    except _Spoilt as spoilt:
        step = first + spoilt.batch - training.state.batch + 1
        what = first_not_finite(training.model, training.batch(spoilt.batch))
        return f"It began in step {step}, with {what}"
    except _WentWell:
        return f"Repeated from step {first} it went well, so the layer cannot be told"


class _WentWell(Exception):
    """The last step of an epoch has numbers."""


class _Spoilt(Exception):
    """A step has not.

    Args:
        batch: Its number in the epoch.
    """

    def __init__(self, batch: int):
        super().__init__(batch)
        self.batch = batch


class _Watch(keras.callbacks.Callback):
    """Ends an epoch at the first step whose loss or gradient is not finite, or at the last one.

    The model is then as it was before that step.
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
    """Names what is not finite first in a step: a layer's output, the loss, or a gradient.

    Gradients come from the loss to the inputs, so the first is the one nearest to the loss. The
    model is of no use afterwards.

    Args:
        model: A model with a fused loss.
        batch: Its inputs, targets and weights.
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
    call = layer.call

    def watched(*args: Any, **kwargs: Any) -> Any:
        outputs = call(*args, **kwargs)
        if not all(map(_is_finite, keras.tree.flatten(outputs))):
            spoilt.append(layer.path or layer.name)
        return outputs

    return watched


def _is_finite(x: Any) -> bool:
    """Whether a tensor has numbers alone; so has what is none, or inside a graph."""
    if not tf.is_tensor(x) or tf.is_symbolic_tensor(x) or not x.dtype.is_floating:
        return True
    return bool(np.isfinite(np.asarray(tf.cast(x, tf.float64))).all())
