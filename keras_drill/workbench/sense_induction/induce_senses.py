"""From words, a text and an encoder to senses."""

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

_OTHER_CONTEXTS = 24  # of a word that is there for comparison
_MOST_AXES = 128
_STATE = 1  # the mean of all tokens: the one at the mask tells less


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
    """Finds senses of words: a KerBS head alone, on what an encoder makes of their contexts.

    The word is masked, so that a state tells what its context says of it. The head learns to tell
    the words, and other frequent words of the text, from their contexts; a word that stands in
    different kinds of contexts needs several senses for that. They begin at clusters of the word's
    contexts.

    Args:
        words: The words, V of them or fewer than the vocabulary.
        lines: The text, read twice.
        encoder: What reads the contexts.
        senses: Senses of each of `words`; other words have one.
        most: Most contexts of each of `words`, drawn from all.
        others: How many other words to tell them from.
        steps: Training steps of 512 contexts.
        seed: Of contexts, clusters and training.
        cache: Folder for the encoder's states, as of `encode_contexts`.
        facts: What `InducedSenses.facts` says beside the seed.

    Raises:
        ValueError: A word is none, stands there twice, or is not one token of the encoder.
        RunError: The text has fewer contexts of a word than senses, or too few in all.
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
    parts = [found[word] for word in words]  # one by one, as they are kept
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
