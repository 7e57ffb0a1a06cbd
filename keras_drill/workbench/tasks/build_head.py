"""Builds the output layer of a run, and the embedding that it may share."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

import keras_drill
from keras_drill.label_encoders.label_encoder import UnquantizedDense
from keras_drill.ops.seed_generator import derived_seed
from keras_drill.scores import InnerProduct, KerBSKernel
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import RunError

_LABELS = 2000  # index for `derived_seed`, above the indices of a model's other layers


def build_sense_embedding(
    config: RunConfig, vocabulary_size: int
) -> keras_drill.SenseEmbedding | None:
    """Builds the input embedding with senses that the output layer shares; `None` if none."""
    options = config.senses
    if not (config.head.has_senses and config.head.tied):
        return None
    is_plain = options.variant == "inner_product"
    return keras_drill.SenseEmbedding(
        vocabulary_size,
        config.backbone.embedding_dim,
        num_senses=_num_senses(config, vocabulary_size),
        min_senses=options.min_senses,
        max_senses=options.max_senses,
        dynamic=options.dynamic,
        score=InnerProduct() if is_plain else KerBSKernel(options.variant),
        weighting=options.weighting,
        usage_by=options.usage,
        senses_start=options.start,
        embeddings_initializer=_initializer(config.training.seed),
        name="embedding",
    )


def build_head(
    config: RunConfig,
    vocabulary_size: int,
    embedding: keras.layers.Embedding,
    seeds: Iterator[int],
    descriptions: np.ndarray | None = None,
) -> keras_drill.OutputLayer:
    """Builds the output layer.

    Args:
        config: the options.
        vocabulary_size: number of words.
        embedding: the input embedding.
        seeds: seeds for the layer's dropouts, one for each.
        descriptions: Descriptions of the words, `[V, ...]`, for `head.kind = "described"`.
    """
    options = config.head
    arguments: dict[str, Any] = {
        "embedding": embedding if options.shares_embedding else None,
        "use_bias": options.use_bias,
        "logit_soft_cap": options.logit_soft_cap or None,
        "z_loss": options.z_loss,
        "tile_size": options.tile_size or None,
        "embeddings_initializer": _initializer(derived_seed(config.training.seed, _LABELS)),
    }
    if options.kind == "mos":
        width = options.context_dim or config.backbone.embedding_dim
        return keras_drill.MixtureOfSoftmaxes(
            vocabulary_size,
            embedding_dim=None if options.tied else width,
            num_mixtures=options.num_mixtures,
            context_dim=width,
            context_dropout=options.context_dropout,
            seed=next(seeds),
            **arguments,
        )
    arguments["label_encoder"] = _build_label_encoder(config, seeds, descriptions)
    if options.has_senses:
        return keras_drill.KernelizedBayesianSoftmax(
            vocabulary_size,
            num_senses=_num_senses(config, vocabulary_size),
            min_senses=config.senses.min_senses,
            max_senses=config.senses.max_senses,
            variant=config.senses.variant,
            dynamic_allocation=config.senses.dynamic,
            usage_by=config.senses.usage,
            senses_start=config.senses.start,
            **arguments,
        )
    return keras_drill.OutputLayer(vocabulary_size, **arguments)


def _num_senses(config: RunConfig, vocabulary_size: int) -> int:
    return round(config.senses.per_word * vocabulary_size)


def _initializer(seed: int | None) -> keras.initializers.Initializer:
    return keras.initializers.RandomUniform(-0.1, 0.1, seed=seed)


def _build_label_encoder(
    config: RunConfig, seeds: Iterator[int], descriptions: np.ndarray | None
) -> keras_drill.LabelEncoder:
    options = config.head
    if options.kind == "described":
        return _build_description_encoder(config, seeds, descriptions)
    if options.kind == "bilinear":
        return keras_drill.BilinearLabelEncoder(
            learning_rate_multiplier=options.learning_rate_multiplier
        )
    if options.kind == "dual":
        return keras_drill.DualNonlinearLabelEncoder(
            options.units or config.backbone.embedding_dim,
            activation=options.activation,
            learning_rate_multiplier=options.learning_rate_multiplier,
        )
    if options.kind in ("drill", "drill-kerbs"):
        return keras_drill.ResidualLabelEncoder(
            depth=options.depth,
            activation=options.activation,
            dropout=options.dropout,
            variational_dropout=options.variational_dropout,
            residual_to_input=options.residual_to_input,
            residual_to_previous=options.residual_to_previous,
            dual=options.encode_hidden,
            seed=next(seeds),
            learning_rate_multiplier=options.learning_rate_multiplier,
        )
    return keras_drill.IdentityLabelEncoder()


def _build_description_encoder(
    config: RunConfig, seeds: Iterator[int], descriptions: np.ndarray | None
) -> keras_drill.DescriptionLabelEncoder:
    options = config.head
    if descriptions is None:
        raise RunError(
            "the word descriptions of the run are missing: restore the file descriptions.npy in "
            "the folder of the run"
        )
    scaled = {"learning_rate_multiplier": options.learning_rate_multiplier}
    width = config.backbone.embedding_dim
    network = keras.Sequential(
        [
            keras.Input(descriptions.shape[1:]),
            keras_drill.layers.Dropout(options.dropout, seed=next(seeds)),
            UnquantizedDense(options.units or width, activation=options.activation, **scaled),
            keras_drill.layers.Dropout(options.dropout, seed=next(seeds)),
            # Without a bias, since adding a constant to all labels changes results only by
            # rounding.
            UnquantizedDense(width, use_bias=False, **scaled),
        ],
        name="reader",
    )
    return keras_drill.DescriptionLabelEncoder(
        descriptions,
        network,
        residual_to_input=options.residual_to_input,
        embedding_dropout=options.embedding_dropout,
        seed=next(seeds),
    )
