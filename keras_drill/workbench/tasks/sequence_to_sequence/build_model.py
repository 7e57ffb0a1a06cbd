"""Builds the model of an encoder–decoder run from its options."""

from collections.abc import Iterator
from typing import Any

import keras

import keras_drill
from keras_drill.layers import (
    AdditiveScore,
    Attention,
    DotScore,
    GeneralScore,
    MultiHeadSourceAttention,
)
from keras_drill.models import RecurrentEncoderDecoder, Transformer
from keras_drill.optimizers import (
    ExponentialSchedule,
    InverseSigmoidSchedule,
    LinearSchedule,
)
from keras_drill.workbench.tasks.build_head import build_head, build_sense_embedding
from keras_drill.workbench.tasks.free_seeds import free_seeds
from keras_drill.workbench.tasks.sequence_to_sequence.config import (
    EncoderDecoderConfig,
    SequenceToSequenceConfig,
)
from keras_drill.workbench.tasks.sequence_to_sequence.run_vocabulary import (
    SequenceToSequenceVocabulary,
)


def build_model(
    config: SequenceToSequenceConfig, run_vocabulary: SequenceToSequenceVocabulary
) -> keras_drill.SequenceToSequence:
    """Builds the model that the options describe, without compiling it."""
    # Layers without seed draw initial weights from the global generator.
    keras.utils.set_random_seed(config.training.seed)
    backbone = _build_backbone(config, run_vocabulary)
    seeds = free_seeds(config.training.seed, backbone)
    head = build_head(
        config, len(run_vocabulary.tokens), backbone.embedding, seeds, run_vocabulary.descriptions
    )
    return keras_drill.SequenceToSequence(
        backbone,
        head,
        label_smoothing=config.head.label_smoothing,
        scheduled_sampling=_build_sampling(config, seeds),
        loss_positions="one" if config.sampling.one_position else config.sampling.loss_positions,
        seed=next(seeds),
    )


def _build_sampling(
    config: SequenceToSequenceConfig, seeds: Iterator[int]
) -> keras_drill.ScheduledSampling | None:
    options = config.sampling
    if options.schedule in ("constant", "linear") and not options.rate:
        return None
    rates = {
        "constant": lambda: options.rate,
        "linear": lambda: LinearSchedule(options.steps, options.rate),
        "exponential": lambda: ExponentialSchedule(1 - 1 / options.steps),
        "inverse-sigmoid": lambda: InverseSigmoidSchedule(options.steps),
    }
    return keras_drill.ScheduledSampling(
        rates[options.schedule](), argmax=options.argmax, seed=next(seeds)
    )


def _build_backbone(
    config: SequenceToSequenceConfig, run_vocabulary: SequenceToSequenceVocabulary
) -> keras.Model:
    options = config.backbone
    arguments: dict[str, Any] = {
        "vocabulary_size": len(run_vocabulary.tokens),
        "embedding_dim": options.embedding_dim,
        "num_layers": options.num_layers,
        "dropout": options.dropout,
        "pad_id": run_vocabulary.target.vocabulary.pad_id,
        "seed": config.training.seed,
        "embedding": build_sense_embedding(config, len(run_vocabulary.tokens)),
    }
    if run_vocabulary.source.vocabulary is not run_vocabulary.target.vocabulary:
        arguments["source_vocabulary_size"] = len(run_vocabulary.source.vocabulary)
    if options.kind == "transformer":
        return Transformer(
            num_heads=options.num_heads,
            feed_forward_dim=options.feed_forward_dim,
            norm_first=options.norm_first,
            attention_dropout=options.attention_dropout,
            activation_dropout=options.activation_dropout,
            **arguments,
        )
    return RecurrentEncoderDecoder(
        units=options.units,
        cell=options.cell,
        bidirectional=options.bidirectional,
        reverse_source=options.reverse_source,
        source_end_last=options.source_end_last,
        attention=_build_attention(options),
        input_feeding=options.input_feeding,
        **arguments,
    )


def _build_attention(options: EncoderDecoderConfig) -> keras.layers.Layer | None:
    if options.attention == "none":
        return None
    if options.attention == "multi-head":
        return MultiHeadSourceAttention(
            options.num_heads,
            key_dim=max(options.units // options.num_heads, 1),
            shared_value=options.shared_value,
        )
    scores = {
        "general": GeneralScore,
        "dot": DotScore,
        "additive": lambda: AdditiveScore(options.units, num_layers=options.attention_layers),
    }
    return Attention(scores[options.attention]())
