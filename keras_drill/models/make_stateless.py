"""Copies of stateful models for batches of any size or of another size."""

from typing import Any

import keras

from keras_drill.layers.carried_state import carried_state


def make_stateless(model: keras.Model) -> keras.Model:
    """Returns a copy of a trained model that carries no state and takes batches of any size.

    A model with a stateful backbone, such as `AWDLSTM(..., stateful=True, batch_size=20)`, reads 20
    texts side by side and continues each of them in the next batch. The copy begins every batch
    with a state of zeros. Use the copy to generate text, for example.

    Args:
        model: A built model: a `keras_drill.LanguageModel`, or any other model that
            `from_config(model.get_config())` can rebuild.

    Returns:
        A model with the same weights, not compiled. The copy shares nothing with `model`.

    Raises:
        ValueError: The model is not built, or `from_config` cannot rebuild its weights because the
            model is quantised.

    Example:

    >>> backbone = keras_drill.models.AWDLSTM(31, 5, 7, 1, stateful=True, batch_size=3)
    >>> model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(31, backbone.embedding))
    >>> model = keras_drill.models.make_stateless(model)
    >>> model.predict(np.array([[4, 2, 3]]), verbose=0).shape
    (1, 3, 31)
    """
    return _copy(model, None)


def with_batch_size(model: keras.Model, batch_size: int) -> keras.Model:
    """Returns a copy of a trained stateful model for another batch size.

    A stateful model continues each row of a batch in the next batch, so its batch size is fixed.
    Use the copy for example for `keras_drill.models.DynamicEvaluator`.

    Args:
        model: A built stateful model: a `keras_drill.LanguageModel`, or any other model that
            `from_config(model.get_config())` can rebuild.
        batch_size: Number of rows in every batch of the copy.

    Returns:
        A model with the same weights, not compiled. The copy shares nothing with `model`, and
        its carried state is zero.

    Raises:
        ValueError: `batch_size` is not positive, the model is not built, or `from_config` cannot
            rebuild its weights because the model is quantised.

    Example:

    >>> backbone = keras_drill.models.AWDLSTM(31, 5, 7, 1, stateful=True, batch_size=3)
    >>> model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(31, backbone.embedding))
    >>> model = keras_drill.models.with_batch_size(model, 1)
    >>> [tuple(variable.shape) for variable in model.backbone.state_variables]
    [(1, 5), (1, 5)]
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
    return _copy(model, batch_size)


def _copy(model: keras.Model, batch_size: int | None) -> keras.Model:
    if not model.built:
        raise ValueError(f"`model` must be built. Received: {model!r}, not built")
    copy = type(model).from_config(_with_rows(model.get_config(), batch_size))
    values, variables = _without_state(model), _without_state(copy)
    if [tuple(v.shape) for v in variables] != [tuple(v.shape) for v in values]:
        raise ValueError(
            "`model` must not be quantised, because its config cannot rebuild its weights. Copy "
            f"the model before quantisation. Received: {model!r}"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    return copy


def _without_state(model: keras.Model) -> list[keras.Variable]:
    state = {id(variable) for variable in carried_state(model)}
    return [variable for variable in model.variables if id(variable) not in state]


def _with_rows(config: Any, batch_size: int | None) -> Any:
    """Returns a nested config for batches of `rows` rows; `None` for any number, without state."""
    if isinstance(config, list | tuple):
        return type(config)(_with_rows(each, batch_size) for each in config)
    if not isinstance(config, dict):
        return config
    config = {name: _with_rows(value, batch_size) for name, value in config.items()}
    if config.get("stateful"):
        config["stateful"] = batch_size is not None
        if "batch_size" in config:
            config["batch_size"] = batch_size
    if config.get("batch_shape"):  # for the input of a functional model
        config["batch_shape"] = (batch_size, *config["batch_shape"][1:])
    return config
