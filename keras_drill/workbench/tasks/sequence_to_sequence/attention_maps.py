"""Computes attention maps of outputs."""

from collections.abc import Sequence

import tensorflow as tf

from keras_drill.export import Translator
from keras_drill.workbench.tasks.sequence_to_sequence.sections import AttentionMap

_MOST_WORDS = 40  # longest source with a readable map


def attention_maps(translator: Translator, sources: Sequence[str]) -> dict[int, AttentionMap]:
    """Computes attention maps of the best output for each source.

    Args:
        translator: The model, with a search that returns attention.
        sources: The sources. Sources that are too long are skipped.

    Returns:
        The maps, by index of the source.
    """
    ids, _, beams = translator.find(tf.constant(sources, tf.string))
    maps = {}
    for number in range(len(sources)):
        length = int(beams.lengths[number, 0])
        source = _words(translator.source.vocabulary, ids[number])
        written = beams.tokens[number, 0, 1:length]
        weights = beams.attention[number, 0, 1:length, : len(source)]
        if 1 < len(source) <= _MOST_WORDS and 0 < length - 1 <= _MOST_WORDS:
            target = [word.decode() for word in translator.target.vocabulary.words(written).numpy()]
            maps[number] = AttentionMap(source, tuple(target), weights.numpy())
    return maps


def _words(vocabulary, ids) -> tuple[str, ...]:
    """Returns the words of `ids` up to and including the end token."""
    words = [word.decode() for word in vocabulary.words(ids).numpy()]
    return tuple(words[: words.index(vocabulary.end_token) + 1])
