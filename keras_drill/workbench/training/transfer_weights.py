"""Initializes a new run with the weights of another run."""

import math

import keras
import numpy as np

from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.task import RunVocabulary, Task
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.snapshot import model_keys

# Weights with a row for each word, or for each sense of a word.
_BY_WORD = ("embeddings", "label_embeddings", "theta", "bias")
_WORD_LAYERS = ("backbone/embedding", "head")
_ALLOCATION = "allocation/"
_AVERAGES = ("allocation/usage", "allocation/word_log_prob")


def transfer_weights(
    model: keras.Model, task: Task, run_vocabulary: RunVocabulary, source: LoadedRun
) -> str:
    """Initializes a new model with the weights of another run whose paths and shapes match.

    If the vocabularies differ, the rows of common words are copied, and other words keep their
    initial rows. Senses are copied together with their allocation to words, if the new vocabulary
    contains all words of the other run. Those words keep their senses, and additional senses are
    allocated to the new words.

    Args:
        model: the new model.
        task: the task of the new run.
        run_vocabulary: the vocabulary of the new run.
        source: the other run.

    Returns:
        A message for the user about the copied and the other weights.

    Raises:
        RunError: The other run has another task, or none of its weights fit.
    """
    if source.config.task != task.config.task:
        raise RunError(
            f"training.start_from must be a run of the task {task.config.task}. Received: "
            f"{source.folder.path}, a run of the task {source.config.task}"
        )
    places = {word: place for place, word in enumerate(source.vocabulary.tokens)}
    rows = np.array([places.get(word, -1) for word in run_vocabulary.tokens])
    # A loaded model has shorter paths than a model that was built, in the same order.
    built = source.task.build_model(source.vocabulary)
    theirs = dict(zip(model_keys(built), source.model.variables, strict=True))
    own = {
        key: variable
        for key, variable in model_keys(model).items()
        if variable.trainable or key in _AVERAGES
    }
    same_words = run_vocabulary.tokens == source.vocabulary.tokens
    has_senses = any(key.startswith(_ALLOCATION) for key in own | theirs)
    sense_rows = _transfer_senses(model, source.model, rows) if has_senses else None
    taken, left = [], []
    for key, variable in own.items():
        values = None
        if key in theirs and not (has_senses and sense_rows is None and _is_of_words(key)):
            values = _values(key, variable, theirs[key], rows, sense_rows, same_words)
        if values is None:
            left.append(key)
        else:
            variable.assign(values)
            taken.append(key)
    if not any(len(own[key].shape) > 1 for key in taken):
        raise RunError(
            "training.start_from must be a run with the same network: no weights of "
            f"{source.folder.path} fit this model"
        )
    known = int(np.count_nonzero(rows >= 0))
    return (
        f"starting from {source.folder.path}: copied {_size(own, taken):,} of {_size(own, own):,} "
        f"weights; {known:,} of the {len(rows):,} words are in its vocabulary"
        + (f"\nnot copied: {', '.join(left)}" if left else "")
    )


def _transfer_senses(
    model: keras.Model, source: keras.Model, rows: np.ndarray
) -> np.ndarray | None:
    """Allocates the senses of a model to words in the same way as in another model.

    Args:
        model: the new model.
        source: the other model.
        rows: for each word of the new model, the id of the same word in the other model, or -1.

    Returns:
        For each sense of the new model, the id of the same sense in the other model, or -1.
        `None` if the new model does not have room for all words and senses of the other model.
    """
    mine, theirs = (
        getattr(getattr(each.head, "composition", None), "allocation", None)
        for each in (model, source)
    )
    if mine is None or theirs is None or mine.max_senses != theirs.max_senses:
        return None
    new_words = np.flatnonzero(rows < 0)
    more = mine.num_senses - theirs.num_senses
    known = np.count_nonzero(rows >= 0)
    if known < theirs.vocabulary_size or more < 0 or (more > 0 and not len(new_words)):
        return None
    place = np.empty(theirs.vocabulary_size, np.int64)
    place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    words = place[keras.ops.convert_to_numpy(theirs.sense_to_word)]
    try:
        mine.assign(np.concatenate([words, np.resize(new_words, more)]))
    except ValueError:  # the options limit the number of senses per word differently
        return None
    senses = np.arange(mine.num_senses)
    return np.where(senses < theirs.num_senses, senses, -1)


def _is_of_words(key: str) -> bool:
    """Returns whether a weight has one row per word or per sense."""
    layer, _, name = key.rpartition("/")
    return key in _AVERAGES or (layer in _WORD_LAYERS and name in _BY_WORD)


def _values(
    key: str,
    variable: keras.Variable,
    other: keras.Variable,
    rows: np.ndarray,
    sense_rows: np.ndarray | None,
    same_words: bool,
) -> np.ndarray | None:
    """Returns the values that a variable copies from another variable.

    Args:
        key: path of the variable.
        variable: variable of the new model.
        other: variable of the other model with the same path.
        rows: for each word of the new model, the id of the same word in the other model, or -1.
        sense_rows: for each sense of the new model, the id of the same sense in the other model, or
            -1; `None` without senses.
        same_words: whether both vocabularies are equal.

    Returns:
        The new values, or `None` if the shapes do not fit.
    """
    values = keras.ops.convert_to_numpy(other)
    if _is_of_words(key) and not (same_words and variable.shape == other.shape):
        # With as many senses as words each word has one sense, so either choice is right.
        by_sense = sense_rows is not None and variable.shape[0] == len(sense_rows)
        chosen = sense_rows if by_sense and sense_rows is not None else rows
        if len(chosen) != variable.shape[0] or variable.shape[1:] != other.shape[1:]:
            return None
        merged = keras.ops.convert_to_numpy(variable).copy()
        merged[chosen >= 0] = values[chosen[chosen >= 0]]
        return merged
    return values if variable.shape == other.shape else None


def _size(variables: dict[str, keras.Variable], keys) -> int:
    return sum(math.prod(variables[key].shape) for key in keys if variables[key].trainable)
