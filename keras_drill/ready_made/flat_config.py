"""Configs of output layers that take the arguments of a part, such as the label encoder."""

import keras


def flat_config(config: dict, part_name: str, part: keras.layers.Layer) -> dict:
    """Replaces `part` in `config` by the constructor arguments of the part."""
    arguments = part.get_config()
    for shared in ("name", "trainable", "dtype"):
        del arguments[shared]
    del config[part_name]
    return {**config, **arguments}
