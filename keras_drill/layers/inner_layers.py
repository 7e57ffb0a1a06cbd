"""Serializes layers that are arguments of other layers."""

import keras


def serialize_layer(layer: keras.layers.Layer | None) -> dict | None:
    """Returns the layer's config without its build config, so that the copy is not built."""
    if layer is None:
        return None
    config = keras.saving.serialize_keras_object(layer)
    config.pop("build_config", None)
    return config


def deserialize_layers(config: dict, *names: str) -> dict:
    """Returns `config` with layers in place of the configs that `serialize_layer` returned.

    Args:
        config: Config of the outer layer, which is not changed.
        *names: Names of the arguments that are layers.
    """
    made = {
        name: keras.saving.deserialize_keras_object(config[name])
        for name in names
        if isinstance(config.get(name), dict)
    }
    return {**config, **made}
