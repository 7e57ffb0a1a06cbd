"""Weights that a new run takes from another."""

import math

import keras
import numpy as np

from keras_drill.tasks.errors import RunError
from keras_drill.tasks.task import Task, Words
from keras_drill.training.loaded_run import LoadedRun
from keras_drill.training.snapshot import model_keys

# Weights with a row for each word, or for each sense of a word.
_BY_WORD = ("embeddings", "label_embeddings", "theta", "bias")
_WORD_LAYERS = ("backbone/embedding", "head")


def take_weights(model: keras.Model, task: Task, words: Words, source: LoadedRun) -> str:
    """Gives a new model the weights of another run that fit, by path.

    Where the words are not the same, rows of words are taken by name; other words keep the rows
    that they begin with. Senses are taken with their allocation to words, so only where the words
    are the same.

    Args:
        model: the new model.
        task: what it is trained for.
        words: its words.
        source: the other run.

    Returns:
        What was taken and what was not.
    """
    if source.config.task != task.config.task:
        raise RunError(
            f"{source.folder.path} was trained for another task, {source.config.task}: give "
            f"training.start_from a run of the task {task.config.task}"
        )
    places = {word: place for place, word in enumerate(source.words.tokens)}
    rows = [places.get(word, -1) for word in words.tokens]
    # A model that was loaded has shorter paths than one that was built, in the same order.
    built = source.task.build_model(source.words)
    theirs = dict(zip(model_keys(built), source.model.variables, strict=True))
    own = {
        key: variable
        for key, variable in model_keys(model).items()
        if variable.trainable or key.startswith("allocation/")
    }
    senses = [key for key in own | theirs if key.startswith("allocation/")]
    same_words = words.tokens == source.words.tokens
    senses_fit = same_words and all(
        key in own and key in theirs and own[key].shape == theirs[key].shape for key in senses
    )
    taken, left = [], []
    for key, variable in own.items():
        by_word = _is_by_word(key) or key in senses
        fits = key in theirs and (senses_fit or not (senses and by_word))
        values = None
        if fits and by_word and not same_words:
            values = _rows_of_words(variable, theirs[key], np.array(rows))
        elif fits and variable.shape == theirs[key].shape:
            values = keras.ops.convert_to_numpy(theirs[key])
        if values is None:
            left.append(key)
        else:
            variable.assign(values)
            taken.append(key)
    if not any(len(own[key].shape) > 1 for key in taken):
        raise RunError(
            f"nothing in {source.folder.path} fits this model: give training.start_from a run with "
            "the same network"
        )
    known = len(rows) - rows.count(-1)
    return (
        f"starting from {source.folder.path}: took {_size(own, taken):,} of {_size(own, own):,} "
        f"weights; it knows {known:,} of the {len(rows):,} words"
        + (f"\nnot taken: {', '.join(left)}" if left else "")
    )


def _is_by_word(key: str) -> bool:
    layer, _, name = key.rpartition("/")
    return layer in _WORD_LAYERS and name in _BY_WORD


def _rows_of_words(variable: keras.Variable, other: keras.Variable, rows: np.ndarray):
    """The variable's values with the rows of the words that the other has; `None` if none fit."""
    if tuple(variable.shape[1:]) != tuple(other.shape[1:]):
        return None
    values = keras.ops.convert_to_numpy(variable).copy()
    values[rows >= 0] = keras.ops.convert_to_numpy(other)[rows[rows >= 0]]
    return values


def _size(variables: dict[str, keras.Variable], keys) -> int:
    return sum(math.prod(variables[key].shape) for key in keys if variables[key].trainable)
