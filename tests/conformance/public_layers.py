"""The one table of public layers that every cross-cutting test visits."""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np

import keras_drill
from keras_drill import layers, models

V, D, H, B, T = 31, 13, 17, 5, 7


class Described(NamedTuple):
    """A way to make a layer, and an input for it.

    Attributes:
        make: Maps keyword arguments of `keras.layers.Layer` to a new layer.
        kind: "hidden" (floats `[B, T, D]`), "labels" (floats `[V, D]`) or "tokens" (`[B, T]`).
    """

    make: Callable[..., keras.Layer]
    kind: str


def embedding():
    return keras.layers.Embedding(V, D, name="words")


def sense_embedding():
    return keras_drill.SenseEmbedding(V, D, num_senses=67, name="senses")


def description_encoder(residual_to_input=True, **options):
    encoder = keras_drill.DescriptionLabelEncoder(
        np.random.default_rng(1).normal(size=(V, H)), residual_to_input=residual_to_input, **options
    )
    encoder.build((V, D), (None, D))
    return encoder


LAYERS = {
    "OutputLayer": Described(lambda **k: keras_drill.OutputLayer(V, z_loss=0.1, **k), "hidden"),
    "SoftmaxOutput": Described(lambda **k: keras_drill.SoftmaxOutput(V, **k), "hidden"),
    "TiedOutput": Described(lambda **k: keras_drill.TiedOutput(V, embedding(), **k), "hidden"),
    "BilinearOutput": Described(
        lambda **k: keras_drill.BilinearOutput(V, embedding(), **k), "hidden"
    ),
    "DualNonlinearOutput": Described(
        lambda **k: keras_drill.DualNonlinearOutput(V, embedding(), units=11, **k), "hidden"
    ),
    "DrillOutput": Described(
        lambda **k: keras_drill.DrillOutput(V, embedding(), depth=2, dual=True, **k), "hidden"
    ),
    "KernelizedBayesianSoftmax": Described(
        lambda **k: keras_drill.KernelizedBayesianSoftmax(V, num_senses=67, **k), "hidden"
    ),
    "KernelizedBayesianSoftmax, reference": Described(
        lambda **k: keras_drill.KernelizedBayesianSoftmax(
            V, variant="reference", max_senses=3, use_bias=True, **k
        ),
        "hidden",
    ),
    "KernelizedBayesianSoftmax, tied": Described(
        lambda **k: keras_drill.KernelizedBayesianSoftmax(V, sense_embedding(), **k), "hidden"
    ),
    "KernelizedBayesianSoftmax, DRILL": Described(
        lambda **k: keras_drill.KernelizedBayesianSoftmax(
            V,
            num_senses=67,
            label_encoder=keras_drill.ResidualLabelEncoder(depth=2, dtype=k.get("dtype")),
            **k,
        ),
        "hidden",
    ),
    "OutputLayer, descriptions": Described(
        lambda **k: keras_drill.OutputLayer(V, embedding(), description_encoder(**k), **k), "hidden"
    ),
    "OutputLayer, descriptions alone": Described(
        lambda **k: keras_drill.OutputLayer(
            V, label_encoder=description_encoder(residual_to_input=False, **k), **k
        ),
        "hidden",
    ),
    "KernelizedBayesianSoftmax, descriptions": Described(
        lambda **k: keras_drill.KernelizedBayesianSoftmax(
            V, num_senses=67, label_encoder=description_encoder(**k), **k
        ),
        "hidden",
    ),
    "DescriptionLabelEncoder": Described(lambda **k: description_encoder(**k), "labels"),
    "MixtureOfSoftmaxes": Described(
        lambda **k: keras_drill.MixtureOfSoftmaxes(V, embedding(), num_mixtures=3, **k), "hidden"
    ),
    "MixtureOfSoftmaxes, bilinear": Described(
        lambda **k: keras_drill.MixtureOfSoftmaxes(
            V,
            embedding(),
            num_mixtures=2,
            context_dim=11,
            context_dropout=0.2,
            label_encoder=keras_drill.BilinearLabelEncoder(dtype=k.get("dtype")),
            **k,
        ),
        "hidden",
    ),
    "SenseEmbedding": Described(
        lambda **k: keras_drill.SenseEmbedding(V, D, num_senses=67, **k), "tokens"
    ),
    "ResidualNetwork": Described(
        lambda **k: keras_drill.label_encoders.ResidualNetwork(depth=3, activation="tanh", **k),
        "labels",
    ),
    "LSTM": Described(lambda **k: layers.LSTM(H, return_sequences=True, **k), "hidden"),
    "GRU": Described(lambda **k: layers.GRU(H, return_sequences=True, **k), "hidden"),
    "ContextSpace": Described(lambda **k: layers.ContextSpace(11, whiten=True, **k), "hidden"),
    "VariationalDropout": Described(lambda **k: layers.VariationalDropout(0.3, **k), "hidden"),
    "PositionalEncoding": Described(
        lambda **k: layers.PositionalEncoding("learned", max_length=T, **k), "hidden"
    ),
    "TransformerLayer": Described(
        lambda **k: layers.TransformerLayer(1, 11, causal=True, norm_first=True, **k), "hidden"
    ),
    "TransformerLanguageBackbone": Described(
        lambda **k: models.TransformerLanguageBackbone(
            V, D, num_layers=2, num_heads=1, feed_forward_dim=11, pad_id=0, **k
        ),
        "tokens",
    ),
    "AWDLSTM": Described(
        lambda **k: models.AWDLSTM(V, embedding_dim=D, units=H, num_layers=2, **k), "tokens"
    ),
    "GRULanguageBackbone": Described(
        lambda **k: models.GRULanguageBackbone(V, embedding_dim=D, units=H, num_layers=2, **k),
        "tokens",
    ),
}


def example_input(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "tokens":
        return rng.integers(0, V, (B, T)).astype("int32")
    shape = (V, D) if kind == "labels" else (B, T, D)
    return rng.normal(size=shape).astype("float32")
