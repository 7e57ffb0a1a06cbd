"""A model that takes any batch, from one that carries state from batch to batch."""

from typing import Any

import keras

from keras_drill.layers.carried_state import carried_state


def make_stateless(model: keras.Model) -> keras.Model:
    """Returns a copy of a trained model that carries no state and takes batches of any size.

    A stateful model, such as a trained `AWDLSTM(..., stateful=True, batch_size=20)`, reads 20 texts
    side by side and continues each of them in the next batch. The copy begins every batch with a
    state of zeros.

    Args:
        model: A built model: a `keras_drill.LanguageModel` or any other model that its config
            describes.

    Returns:
        A model with the same weights, not compiled. It shares nothing with `model`.

    Raises:
        ValueError: The model is not built, or its config does not describe its weights.

    Example:

    >>> backbone = keras_drill.models.AWDLSTM(31, 5, 7, 1, stateful=True, batch_size=3)
    >>> model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(31, backbone.embedding))
    >>> model = keras_drill.models.make_stateless(model)
    >>> model.predict(np.array([[4, 2, 3]]), verbose=0).shape
    (1, 3, 31)
    """
    if not model.built:
        raise ValueError(f"`model` must be built. Received: {model!r}, not built")
    state = {id(variable) for variable in carried_state(model)}
    values = [variable for variable in model.variables if id(variable) not in state]
    copy = type(model).from_config(_stateless(model.get_config()))
    if [tuple(v.shape) for v in copy.variables] != [tuple(v.shape) for v in values]:
        raise ValueError(
            "`model` must have the weights that its config describes: not quantised. "
            f"Received: {model!r}"
        )
    for variable, value in zip(copy.variables, values, strict=True):
        variable.assign(value)
    return copy


def _stateless(config: Any) -> Any:
    """A config, of layers inside layers too, without state and without sizes of batches."""
    if isinstance(config, list | tuple):
        return type(config)(map(_stateless, config))
    if not isinstance(config, dict):
        return config
    config = {name: _stateless(value) for name, value in config.items()}
    if config.get("stateful"):
        config["stateful"] = False
        if "batch_size" in config:
            config["batch_size"] = None
    if config.get("batch_shape"):  # of a functional model's input
        config["batch_shape"] = (None, *config["batch_shape"][1:])
    return config
