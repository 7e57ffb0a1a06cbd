"""The model of a run, ready to be trained."""

from typing import Any

import keras

import keras_drill
from keras_drill.data import ContiguousBatches
from keras_drill.models.awd_lstm import AWDLSTM
from keras_drill.models.gru_language_backbone import GRULanguageBackbone
from keras_drill.training.build_head import build_head, build_sense_embedding
from keras_drill.training.build_optimizer import build_optimizer
from keras_drill.training.config import RunConfig


def build_model(
    config: RunConfig, vocabulary_size: int, batches: ContiguousBatches
) -> keras_drill.LanguageModel:
    """Builds and compiles the model that the options describe, to be trained with `batches`."""
    # Initial weights are drawn from the global generator where a layer takes no seed.
    keras.utils.set_random_seed(config.training.seed)
    backbone = _build_backbone(config, vocabulary_size)
    model = keras_drill.LanguageModel(
        backbone,
        build_head(config, vocabulary_size, backbone.embedding),
        label_smoothing=config.head.label_smoothing,
    )
    model.compile(
        build_optimizer(config, batches),
        metrics=[keras_drill.metrics.Perplexity()],
        jit_compile=config.training.jit_compile,
    )
    model(keras.ops.zeros((config.data.batch_size, 1), "int32"))
    backbone.reset_state()
    return model


def _build_backbone(config: RunConfig, vocabulary_size: int) -> keras.Model:
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
        "batch_size": config.data.batch_size,
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
