"""Exports an encoder–decoder for TensorFlow Serving."""

import os
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_drill.data import Tokenizer, Vocabulary
from keras_drill.export.asset_vocabulary import AssetVocabulary
from keras_drill.export.model_card import ModelCard
from keras_drill.export.narrow_weights import served_signatures
from keras_drill.export.saved_model_version import new_version, write_module
from keras_drill.export.side import Side
from keras_drill.export.translator import Translator
from keras_drill.layers.cudnn import portable_kernels


def export_translator(
    model: Any,
    directory: str | os.PathLike,
    source: tuple[Tokenizer, Vocabulary],
    target: tuple[Tokenizer, Vocabulary],
    *,
    version: int | None = None,
    warmup_texts: tuple[str, ...] = ("",),
    weights: str = "float32",
    card: ModelCard | None = None,
    **options: Any,
) -> Path:
    """Exports an encoder–decoder as a SavedModel from source texts to target texts.

    The model is written to `directory/<version>/` with the signatures `translate` (also
    `serving_default`), `complete` and `examples`. `Translator` documents the signatures, and
    `export_saved_model` the contents of the SavedModel.

    Args:
        model: A `keras_drill.SequenceToSequence`.
        directory: The model's folder, such as `saved_models/<name>`. Created if missing.
        source: Pair of the tokenizer and the vocabulary of the sources.
        target: Pair of the tokenizer and the vocabulary of the targets.
        version: A positive integer, different from existing versions. Defaults to one more than the
            highest version.
        warmup_texts: Sources that TensorFlow Serving sends through every signature before the
            model takes requests. If empty, no warm-up file is written.
        weights: Type of the stored weights, as in `export_saved_model`.
        card: Model card, as in `export_saved_model`.
        **options: Optional arguments of `Translator`, such as `search` and `max_tokens`, with the
            defaults of that class.

    Returns:
        The version's folder.
    """
    with new_version(directory, version) as folder:
        sides = []
        for name, (tokenizer, vocabulary) in {"source": source, "target": target}.items():
            path = folder / "words" / f"{name}-vocabulary.txt"
            vocabulary.save(path)
            sides.append(Side(tokenizer, AssetVocabulary(vocabulary, path)))
        module = Translator(model, *sides, **options)
        resources = tf.Module()
        resources.source, resources.target = sides
        with portable_kernels(model.backbone):
            signatures = served_signatures(module, weights)
            write_module(signatures, resources, folder.model, warmup_texts, card)
    return folder.published
