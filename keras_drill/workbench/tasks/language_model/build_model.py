"""Builds the model of a language model run."""

from typing import Any

import keras
import numpy as np

import keras_drill
from keras_drill.models.awd_lstm import AWDLSTM
from keras_drill.models.gru_language_backbone import GRULanguageBackbone
from keras_drill.workbench.tasks.build_head import build_head, build_sense_embedding
from keras_drill.workbench.tasks.free_seeds import free_seeds
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig


def build_model(
    config: LanguageModelConfig,
    vocabulary_size: int,
    rows: int,
    descriptions: np.ndarray | None = None,
) -> keras_drill.LanguageModel:
    """Builds the model that the options describe, without compiling it.

    Args:
        config: The options.
        vocabulary_size: Number of words V.
        rows: Number of rows in the batch of one replica.
        descriptions: Descriptions of the words, `[V, f]`, for `head.kind = "described"`.
    """
    # Layers without seed draw initial weights from the global generator.
    keras.utils.set_random_seed(config.training.seed)
    backbone = _build_backbone(config, vocabulary_size, rows)
    seeds = free_seeds(config.training.seed, backbone)
    return keras_drill.LanguageModel(
        backbone,
        build_head(config, vocabulary_size, backbone.embedding, seeds, descriptions),
        label_smoothing=config.head.label_smoothing,
    )


def _build_backbone(config: LanguageModelConfig, vocabulary_size: int, rows: int) -> keras.Model:
    options = config.backbone
    arguments: dict[str, Any] = {
        "vocabulary_size": vocabulary_size,
        "embedding_dim": options.embedding_dim,
        "units": options.units,
        "num_layers": options.num_layers,
        "output_dim": options.output_dim or None,
        "dropout": options.dropout,
        "hidden_dropout": options.hidden_dropout,
        "input_dropout": options.input_dropout,
        "embedding_dropout": options.embedding_dropout,
        "stateful": True,
        "batch_size": rows,
        "seed": config.training.seed,
        "embedding": build_sense_embedding(config, vocabulary_size),
    }
    if options.kind == "gru":
        return GRULanguageBackbone(**arguments)
    return AWDLSTM(
        **arguments,
        weight_dropout=options.weight_dropout,
        activation_regularization=options.activation_regularization,
        temporal_activation_regularization=options.temporal_activation_regularization,
    )
