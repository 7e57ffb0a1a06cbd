"""Configs of layers that other layers are given."""

import keras


def serialize_layer(layer: keras.layers.Layer | None) -> dict | None:
    """The layer's config without what was done with it, for that is not of the layer."""
    if layer is None:
        return None
    config = keras.saving.serialize_keras_object(layer)
    config.pop("build_config", None)
    return config


def deserialize_layers(config: dict, *names: str) -> dict:
    """The config, with layers in place of what `serialize_layer` gave."""
    made = {
        name: keras.saving.deserialize_keras_object(config[name])
        for name in names
        if isinstance(config.get(name), dict)
    }
    return {**config, **made}
