"""The model of a run, ready to be trained."""

from typing import Any

import keras

import keras_drill
from keras_drill.data import ContiguousBatches
from keras_drill.models.awd_lstm import AWDLSTM
from keras_drill.models.gru_language_backbone import GRULanguageBackbone
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
        _build_head(config, vocabulary_size, backbone),
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
    }
    if options.kind == "gru":
        return GRULanguageBackbone(**arguments)
    return AWDLSTM(
        **arguments,
        weight_dropout=options.weight_dropout,
        activation_regularization=options.activation_regularization,
        temporal_activation_regularization=options.temporal_activation_regularization,
    )


def _build_head(
    config: RunConfig, vocabulary_size: int, backbone: keras.Model
) -> keras_drill.OutputLayer:
    options = config.head
    return keras_drill.OutputLayer(
        vocabulary_size,
        embedding=None if options.kind == "softmax" else backbone.embedding,
        label_encoder=_build_label_encoder(config),
        use_bias=options.use_bias,
        logit_soft_cap=options.logit_soft_cap or None,
        z_loss=options.z_loss,
        tile_size=options.tile_size or None,
        embeddings_initializer=keras.initializers.RandomUniform(
            -0.1, 0.1, seed=config.training.seed
        ),
    )


def _build_label_encoder(config: RunConfig) -> keras_drill.LabelEncoder:
    options = config.head
    if options.kind == "bilinear":
        return keras_drill.BilinearLabelEncoder()
    if options.kind == "dual":
        return keras_drill.DualNonlinearLabelEncoder(
            options.units or config.backbone.embedding_dim, activation=options.activation
        )
    if options.kind == "drill":
        return keras_drill.ResidualLabelEncoder(
            depth=options.depth,
            activation=options.activation,
            dropout=options.dropout,
            variational_dropout=options.variational_dropout,
            residual_to_input=options.residual_to_input,
            residual_to_previous=options.residual_to_previous,
            dual=options.encode_hidden,
            seed=config.training.seed,
        )
    return keras_drill.IdentityLabelEncoder()
