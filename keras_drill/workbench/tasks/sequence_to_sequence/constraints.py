"""Makes the constraints on outputs that section `[decoding]` names."""

import tensorflow as tf

from keras_drill.decoding import (
    BannedWords,
    Constraint,
    MinLength,
    NoRepeatNGrams,
    RepetitionPenalty,
)
from keras_drill.workbench.tasks.sequence_to_sequence.config import DecodingConfig
from keras_drill.workbench.tasks.sequence_to_sequence.run_vocabulary import SideVocabulary


def make_constraints(
    options: DecodingConfig, run_vocabulary: SideVocabulary
) -> tuple[Constraint, ...]:
    """Makes the constraints of the options for outputs with this vocabulary."""
    constraints: list[Constraint] = []
    if options.min_length:
        constraints.append(MinLength(options.min_length))
    if options.repetition_penalty != 1:
        constraints.append(RepetitionPenalty(options.repetition_penalty))
    if options.no_repeat_ngram:
        constraints.append(NoRepeatNGrams(options.no_repeat_ngram))
    banned = _ids(options.banned_words, run_vocabulary)
    if banned:
        constraints.append(BannedWords(banned))
    return tuple(constraints)


def _ids(texts: tuple[str, ...], run_vocabulary: SideVocabulary) -> list[list[int]]:
    """Returns the ids of each text.

    Texts with unknown words are skipped, since outputs never contain unknown words.
    """
    if not texts:
        return []
    ids = run_vocabulary.vocabulary.ids(run_vocabulary.tokenizer.tokenize(tf.constant(texts)))
    return [row for row in ids.to_list() if row and run_vocabulary.vocabulary.unknown_id not in row]
