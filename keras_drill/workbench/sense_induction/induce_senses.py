"""Finds senses of words in a text, with a pretrained encoder and a KerBS output layer."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_drill.layers import ContextSpace
from keras_drill.models.text_encoder import TextEncoder
from keras_drill.workbench.sense_induction.encode_contexts import encode_contexts
from keras_drill.workbench.sense_induction.induced_senses import InducedSenses
from keras_drill.workbench.sense_induction.train_senses import (
    begin_at_clusters,
    make_sense_model,
    train_senses,
)
from keras_drill.workbench.sense_induction.word_contexts import find_contexts, frequent_words
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.sense_study import times

_OTHER_CONTEXTS = 24  # contexts of each of the other words
_MOST_AXES = 128
_STATE = 1  # index of the mean over all tokens, which is more informative than the mask's state


def induce_senses(
    words: Sequence[str],
    lines: Iterable[str],
    encoder: TextEncoder,
    senses: int = 3,
    most: int = 1000,
    others: int = 400,
    steps: int = 400,
    seed: int = 0,
    cache: str | os.PathLike | None = None,
    facts: dict[str, Any] | None = None,
) -> InducedSenses:
    """Finds senses of words by training a KerBS output layer on an encoder's states.

    The encoder reads each context with the word masked, so a state depends only on the context.
    The output layer learns to predict the word from the state, among `words` and other frequent
    words of the text. A word in different kinds of contexts needs several senses for this.
    Senses are initialized with clusters of the word's contexts.

    Args:
        words: The words whose senses are searched.
        lines: The lines of the text.
        encoder: The encoder that reads the contexts.
        senses: Number of senses of each of `words`. Other words have one sense.
        most: Maximum number of contexts of each of `words`, drawn at random from all contexts.
        others: Number of other frequent words that the output layer also predicts.
        steps: Number of training steps, with 512 contexts each.
        seed: Seed of the drawn contexts, the clusters and the training.
        cache: Folder that caches the encoder's states, see `encode_contexts`.
        facts: Values for `InducedSenses.facts` in addition to the seed.

    Raises:
        ValueError: An item of `words` is not a word, occurs twice, or is not one token of the
            encoder.
        RunError: The text has too few contexts of a word, fewer than 3 or fewer than senses.
    """
    words = [word.lower() for word in words]
    encoder.check_words(words)
    lines = list(lines)
    found = find_contexts(lines, words, most, seed)
    for word in words:
        if len(found[word]) < max(senses, 3):
            raise RunError(
                f"{word!r} occurs {times(len(found[word]))} in the text, too few for {senses} "
                "senses: give a longer text with --data, or fewer senses with --senses"
            )
    frequent = frequent_words(lines, 3 * others, words)
    known = [word for word in frequent if encoder.knows(word)][:others]
    vocabulary = [*words, *known]
    contexts = {**found, **find_contexts(lines, known, _OTHER_CONTEXTS, seed)}
    ids = np.repeat(np.arange(len(vocabulary)), [len(contexts[word]) for word in vocabulary])
    parts = [found[word] for word in words]  # separate, so that each word has its own cache files
    parts.append([context for word in known for context in contexts[word]])
    states = np.concatenate(
        [
            encode_contexts(encoder, part, cache=cache, progress=_progress)[:, _STATE]
            for part in parts
        ]
    )
    space = ContextSpace(min(_MOST_AXES, encoder.width, len(states) - 1))
    space.adapt(states)
    keras.utils.set_random_seed(seed)
    per_word = [senses] * len(words) + [1] * len(known)
    model = make_sense_model(space, per_word, seed=seed)
    begin_at_clusters(model, states, ids, seed)
    train_senses(model, states, ids, steps, seed=seed)
    return InducedSenses(
        model,
        tuple(vocabulary),
        found,
        {word: states[ids == number] for number, word in enumerate(words)},
        {**(facts or {}), "seed": seed},
    )


def _progress(done: int, number: int) -> None:
    print(f"contexts read: {done:,} of {number:,}", flush=True)
