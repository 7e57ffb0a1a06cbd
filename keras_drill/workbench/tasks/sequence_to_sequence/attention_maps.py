"""Where models look while they answer."""

from collections.abc import Sequence

import tensorflow as tf

from keras_drill.export import Translator
from keras_drill.workbench.tasks.sequence_to_sequence.sections import AttentionMap

_MOST_WORDS = 40  # of a source whose map can be read


def attention_maps(translator: Translator, sources: Sequence[str]) -> dict[int, AttentionMap]:
    """Maps of the best answers to sources, by their number; to those that are not too long.

    Args:
        translator: The model, whose search returns attention.
        sources: The sources.
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
    """Words up to the end token, which is one of them."""
    words = [word.decode() for word in vocabulary.words(ids).numpy()]
    return tuple(words[: words.index(vocabulary.end_token) + 1])
