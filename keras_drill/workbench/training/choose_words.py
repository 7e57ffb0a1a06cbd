"""Chooses the words whose senses are shown by default."""

import numpy as np

from keras_drill.workbench.analysis import WordSenses
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.shown_senses import TextOfSenses

FEWEST_OCCURRENCES = 3  # points that a projection to a plane needs
_ENOUGH = 20  # occurrences for a reliable mean over contexts
_CANDIDATES = 200  # so that their hidden states fit in memory with any model


def choose_words(
    run: LoadedRun, shown: TextOfSenses, num_senses: np.ndarray, number: int
) -> list[WordSenses]:
    """Chooses the content words whose senses depend most on the context.

    `WordSenses.information` measures how much the senses depend on the context. Content words
    contain a letter. They are not among the most frequent words that make up half of the training
    text, since most of those are function words. Other words are chosen only if there are too few
    content words.

    Args:
        run: The run.
        shown: The text in which the words occur.
        num_senses: Number of senses of each word, `[V]`.
        number: Maximum number of words to choose.

    Returns:
        The senses of the chosen words, the best choice first.
    """
    tokens = run.vocabulary.tokens
    seen = np.bincount(shown.ids, minlength=len(tokens))
    counts = np.array(seen if run.vocabulary.counts is None else run.vocabulary.counts)
    special = np.isin(np.arange(len(tokens)), list(run.vocabulary.special_ids))
    content = is_content(np.where(special, 0, counts)) & np.array(
        [any(map(str.isalpha, token)) for token in tokens]
    )
    # From the first choice to the last resort.
    rank = np.select(
        [num_senses < 2, ~content, seen < _ENOUGH],
        [3, 2, 1],
        default=0,
    )
    order = np.lexsort([-counts, rank])
    candidates = order[((seen >= FEWEST_OCCURRENCES) & ~special)[order]][:_CANDIDATES]
    read = shown.read(candidates.tolist())
    return sorted(read, key=lambda senses: (rank[senses.word], -senses.information))[:number]


def is_content(counts: np.ndarray) -> np.ndarray:
    """Marks all words except the most frequent ones that make up half of all occurrences.

    Args:
        counts: Number of occurrences of each word, `[V]`.

    Returns:
        Bool `[V]`, True for content words.

    Example:

    >>> is_content(np.array([50, 30, 20, 10, 5, 5]))
    array([False, False,  True,  True,  True,  True])
    """
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    result = np.empty(len(counts), bool)
    result[order] = before >= counts.sum() / 2
    return result
