"""Starts a new output layer with the probabilities of a trained one."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_drill.compositions import MultiSense, Softmax
from keras_drill.senses.copies_of_words import bias_of_copies, copies_of_words

TOLERANCES = {"float64": 1e-5, "float32": 1e-4}


def begin_from(new: Any, old: Any) -> None:
    """Builds the output layer `new` with the probabilities of the trained layer `old`.

    Raises:
        ValueError: `new` is already built, or cannot represent these probabilities.
    """
    if new.built:
        raise ValueError(
            f"`head` must be new, not built yet. Received: head={new!r}, which is built"
        )
    is_plain = isinstance(old.composition, Softmax) and old.score.is_linear
    if not is_plain or old.label_encoder.hidden_network is not None:
        raise ValueError(
            "The head of the model must be a single softmax over inner products of hidden states "
            "and labels, such as `TiedOutput`. Other heads cannot be replaced by `with_head`. "
            f"Received: model.head={old!r}"
        )
    for name in ("vocabulary_size", "logit_soft_cap"):
        if getattr(new, name) != getattr(old, name):
            raise ValueError(
                f"`{name}` of the new head must equal that of the model's present head, "
                f"{getattr(old, name)}. Received: {name}={getattr(new, name)}"
            )
    if new.embedding is not None and new.embedding is not old.embedding:
        raise ValueError(
            "`embedding` of the new head must be the embedding of the model's present head, "
            f"`model.head.embedding`, or None. Received: embedding={new.embedding!r}"
        )
    new.build(old.hidden_shape)
    words = np.arange(old.vocabulary_size)
    if isinstance(new.composition, MultiSense):
        words = np.asarray(new.composition.allocation.sense_to_word)
    if new.embedding is None and new.label_encoder.reads_embeddings:
        _copy_labels(new, np.asarray(old.encoded_labels()), words)
    _copy_biases(new, old, words)
    _check_equal(new, old)


def _copy_labels(new, labels, words):
    if new.label_embeddings.shape[1] != labels.shape[1]:
        raise ValueError(
            f"`embedding_dim` of the new head must be None or {labels.shape[1]}, the width of the "
            "labels of the model's present head. "
            f"Received: embedding_dim={new.embedding_dim}"
        )
    new.label_embeddings.assign(copies_of_words(labels, words))


def _copy_biases(new, old, words):
    biases = np.zeros(old.vocabulary_size) if old.bias is None else np.asarray(old.bias)
    biases = biases[words] + bias_of_copies(words)
    if new.bias is not None:
        new.bias.assign(biases.astype("float32"))
    elif biases.any():
        raise ValueError(
            "`use_bias` of the new head must be True if the model's present head has biases, or if "
            "words of the new head have different numbers of senses. Received: use_bias=False"
        )


def _check_equal(new, old):
    """Raises `ValueError` if log-probabilities of random hidden states differ."""
    hidden = np.random.default_rng(1).normal(size=(4, old.hidden_shape[-1]))
    hidden = ops.convert_to_tensor(hidden, keras.backend.floatx())
    difference = float(ops.max(ops.abs(new(hidden) - old(hidden))))
    if not difference < TOLERANCES.get(new.compute_dtype, 0.1):
        raise ValueError(
            "`head` must initially give the same probabilities as the model's head. DRILL and "
            'mixtures need `gated=True`, and bilinear labels need `kernel_initializer="identity"`. '
            "With senses and a soft cap, all words need the same number of senses. Received: a "
            f"head whose log-probabilities differ by up to {difference:.2g}"
        )
