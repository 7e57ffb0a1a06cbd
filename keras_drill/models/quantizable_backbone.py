"""Backbones whose layers stay quantised after saving and loading."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras

from keras_drill.ops.private_interfaces import direct_layers


class QuantizableBackbone(keras.Model):
    """Base class for backbones that stay quantised after saving and loading.

    `Model.quantize` replaces the weights of a backbone's inner layers. The arguments of the
    backbone do not describe this change, so its config also stores the quantisation modes of these
    layers. A backbone created from the config is quantised after building, so that saved weights
    fit. Layers that were passed as arguments store their modes in their own configs.

    Args:
        quantized_layers: Quantisation modes of inner layers, such as
            `{"decoder/bridge_0": "int8"}`, by their names from the outermost layer inwards.
        **kwargs: Keyword arguments of `keras.Model`.
    """

    def __init__(self, quantized_layers: Mapping[str, str] | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self._modes = dict(quantized_layers or {})

    @property
    def quantized_layers(self) -> dict[str, str]:
        """Quantisation modes of inner layers, by their names from the outermost layer inwards."""
        if not self.built:
            return dict(self._modes)
        return {
            path: layer.quantization_mode
            for path, layer in _inner_layers(self)
            if layer.quantization_mode is not None
        }

    def quantize_layers(self) -> None:
        """Quantises the layers in `quantized_layers`. Call this method at the end of `build`."""
        for path, layer in _inner_layers(self):
            if path in self._modes and layer.quantization_mode is None:
                layer.quantize(self._modes[path])

    def get_config(self) -> dict:
        modes = self.quantized_layers
        return {**super().get_config(), **({"quantized_layers": modes} if modes else {})}


def _inner_layers(layer: keras.Layer, before: str = "") -> Iterator[tuple[str, keras.Layer]]:
    """Yields all inner layers, with their names from the outermost layer inwards."""
    for inner in direct_layers(layer):
        path = before + inner.name
        yield path, inner
        yield from _inner_layers(inner, f"{path}/")
