"""Backbones whose layers stay quantised when they are saved."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from keras_drill.ops.private_interfaces import direct_layers


class QuantizableBackbone(keras.Model):
    """Abstract: a backbone that makes its inner layers itself.

    `Model.quantize` replaces the weights of layers inside, of which the arguments of a backbone
    know nothing: their modes are a part of its config, and a backbone made from that is quantised
    again once it is built, so that the weights that were saved fit. Layers that it was given have
    configs of their own, which say so.

    Args:
        quantized_layers: How layers inside are quantised, `{"decoder/bridge_0": "int8"}`, by their
            names from the outermost in.
        **kwargs: Keyword arguments of `keras.Model`.
    """

    def __init__(self, quantized_layers: Mapping[str, str] | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self._modes = dict(quantized_layers or {})

    @property
    def quantized_layers(self) -> dict[str, str]:
        """How layers inside are quantised, by their names from the outermost in."""
        if not self.built:
            return dict(self._modes)
        return {
            path: layer.quantization_mode
            for path, layer in _inner_layers(self)
            if layer.quantization_mode is not None
        }

    def quantize_layers(self) -> None:
        """Quantises the layers that the arguments name: the last thing that `build` does."""
        for path, layer in _inner_layers(self):
            if path in self._modes and layer.quantization_mode is None:
                layer.quantize(self._modes[path])

    def get_config(self) -> dict:
        modes = self.quantized_layers
        return {**super().get_config(), **({"quantized_layers": modes} if modes else {})}


def _inner_layers(layer: keras.Layer, before: str = "") -> Iterator[tuple[str, keras.Layer]]:
    """All layers inside, with their names from the outermost in."""
    for inner in direct_layers(layer):
        path = before + inner.name
        yield path, inner
        yield from _inner_layers(inner, f"{path}/")
