"""Adds words to an output layer that computes labels from descriptions of the words."""

import copy

import keras
import numpy as np

from keras_drill.compositions import MultiSense
from keras_drill.label_encoders import DescriptionLabelEncoder
from keras_drill.senses import SenseEmbedding


def with_words(head, descriptions, bias, embedding):
    """Implements `OutputLayer.with_words`."""
    encoder = head.label_encoder
    if not isinstance(encoder, DescriptionLabelEncoder):
        raise ValueError(
            "To add words, `label_encoder` must be a keras_drill.DescriptionLabelEncoder, which "
            f"computes their labels. Received: label_encoder={encoder!r}"
        )
    descriptions = np.asarray(descriptions)
    rows, shape = descriptions.shape[:1], tuple(encoder.descriptions.shape[1:])
    if not rows or rows == (0,) or descriptions.shape[1:] != shape:
        raise ValueError(
            f"`descriptions` must be of shape {('n', *shape)} for n new words, with at least one "
            "new word. "
            f"Received: descriptions of shape {descriptions.shape}"
        )
    if (embedding is None) != (head.embedding is None):
        raise ValueError(
            "`embedding` must be the larger embedding, with rows for the new words, if this layer "
            f"shares an embedding, and None otherwise. Received: embedding={embedding!r} for a "
            f"layer with embedding={head.embedding!r}"
        )
    if isinstance(head.embedding, SenseEmbedding):
        raise ValueError(
            "`embedding` must not be a SenseEmbedding, in which new words would have no senses. "
            f"Received: embedding={head.embedding!r}"
        )
    new = _make(head, len(descriptions), embedding)
    new.build(head.hidden_shape)
    _copy(head, new)
    _describe(head, new, descriptions, bias)
    return new


def grown(config, sizes: dict[str, int], by: int):
    """Copies a config and increases sizes in it, also in nested configs.

    Args:
        config: A config, or a value in one.
        sizes: Old sizes by key. An entry is increased if `sizes` has its key and value.
        by: The number to add.
    """
    if isinstance(config, dict):
        return {
            key: value + by
            if key in sizes and isinstance(value, int) and value == sizes[key]
            else grown(value, sizes, by)
            for key, value in config.items()
        }
    if isinstance(config, list | tuple):
        return type(config)(grown(value, sizes, by) for value in config)
    return copy.copy(config)


def copy_rows(old: keras.Variable, new: keras.Variable) -> None:
    """Copies a variable into a variable that may be larger. Additional rows keep their values."""
    values = np.array(np.asarray(new.value))
    values[tuple(map(slice, old.shape))] = np.asarray(old.value)
    new.assign(values)


def _make(head, by, embedding):
    config = {**head.get_config(), "embedding": None}
    config = grown(config, {"vocabulary_size": head.vocabulary_size}, by)
    if isinstance(head.composition, MultiSense):
        senses = head.composition.allocation
        config = grown(config, {"num_senses": senses.num_senses}, by * senses.min_senses)
    config["label_encoder"]["config"]["descriptions"]["shape"][0] += by
    config["embedding"] = embedding
    new = type(head).from_config(config)
    new.tie_to(embedding)
    return new


def _copy(head, new):
    shared = () if new.embedding is None else {id(v) for v in new.embedding.variables}
    old = () if head.embedding is None else {id(v) for v in head.embedding.variables}
    for a, b in zip(
        (v for v in head.variables if id(v) not in old),
        (v for v in new.variables if id(v) not in shared),
        strict=True,
    ):
        copy_rows(a, b)


def _describe(head, new, descriptions, bias):
    first, num_labels = head.vocabulary_size, head.composition.num_labels(head.vocabulary_size)
    encoder, words = new.label_encoder, np.arange(first, new.vocabulary_size)
    _assign_from(encoder.descriptions, first, descriptions)
    _assign_from(encoder.has_embedding, first, np.zeros(len(words)))
    labels_a_word = 1
    if isinstance(new.composition, MultiSense):
        labels_a_word = new.composition.allocation.min_senses
        senses = np.asarray(head.composition.allocation.sense_to_word)
        new.composition.allocation.assign(np.append(senses, np.repeat(words, labels_a_word)))
    if new.bias is not None:
        if bias is None:
            bias = np.mean(np.asarray(head.bias)[:num_labels])
        bias = np.broadcast_to(np.asarray(bias) - np.log(labels_a_word), len(words))
        _assign_from(new.bias, num_labels, np.repeat(bias, labels_a_word))
    elif bias is not None:
        raise ValueError(f"`bias` must be None if the layer has no biases. Received: bias={bias!r}")


def _assign_from(variable, first, rows):
    values = np.array(np.asarray(variable.value))
    values[first : first + len(rows)] = rows
    variable.assign(values)
