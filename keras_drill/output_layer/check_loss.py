"""Detects a Keras loss that would treat an output layer's log-probabilities as probabilities."""

from typing import Any

import keras

from keras_drill.ops.private_interfaces import called_model, producer

# Keras' losses that take probabilities by default: their class names in lower case.
_OF_PROBABILITIES = ("categoricalcrossentropy", "sparsecategoricalcrossentropy")


def check_compiled_loss(head: keras.layers.Layer) -> None:
    """Checks that the compiled loss for the outputs of `head` takes log-probabilities.

    Log-probabilities are negative. A loss without `from_logits=True` clips all of them to one
    constant and has no gradient. The function checks only functional and sequential models, since
    Keras does not record which layer computed the output of other models. On JAX it checks nothing,
    because a layer cannot find the model that calls it.

    Raises:
        ValueError: The loss is a cross-entropy of probabilities.
    """
    model = called_model()
    if not isinstance(model, keras.Model) or not getattr(model, "loss", None):
        return
    for output, loss in _outputs_and_losses(model):
        if _takes_probabilities(loss) and producer(output)[0] is head:
            raise ValueError(
                "The loss of an output layer's log-probabilities must be made with "
                "`from_logits=True`: "
                "`keras.losses.SparseCategoricalCrossentropy(from_logits=True)`. Without it the "
                f"model learns nothing. Received: loss={loss!r}"
            )


def _outputs_and_losses(model: keras.Model) -> list[tuple[Any, Any]]:
    """Returns pairs of a symbolic output and its loss, as far as these are known."""
    # `output` of a sequential model is the output of the model's call, not of its last layer.
    is_sequential = isinstance(model, keras.Sequential)
    outputs, loss = getattr(model, "outputs" if is_sequential else "output", None), model.loss
    if isinstance(outputs, keras.KerasTensor):
        outputs = [outputs]
    if isinstance(outputs, list) and len(outputs) == 1:
        loss = keras.tree.flatten(loss)[:1]
    if isinstance(outputs, dict) and isinstance(loss, dict):
        return [(outputs[name], loss[name]) for name in outputs if name in loss]
    if isinstance(outputs, dict) and isinstance(loss, list | tuple):
        outputs = list(outputs.values())
    if isinstance(outputs, list | tuple) and isinstance(loss, list | tuple):
        return list(zip(outputs, loss, strict=False))
    if isinstance(outputs, list | tuple) and isinstance(loss, dict):
        named = dict(zip(model.output_names, outputs, strict=False))
        return [(named[name], loss[name]) for name in named if name in loss]
    return []


def _takes_probabilities(loss: Any) -> bool:
    if isinstance(loss, str):
        name, options = loss, {}
    elif isinstance(loss, keras.losses.Loss):
        name, options = type(loss).__name__, loss.get_config()
    else:
        name, options = getattr(loss, "__name__", ""), {}
    is_one = name.replace("_", "").lower() in _OF_PROBABILITIES
    return is_one and not options.get("from_logits", False)
