"""The senses that words have in a text."""

from collections.abc import Iterable, Sequence

from keras import ops

from keras_drill.analysis.collect_hidden import collect_hidden
from keras_drill.analysis.word_senses import WordSenses
from keras_drill.ready_made import KernelizedBayesianSoftmax


def collect_word_senses(model, dataset: Iterable, words: Sequence[int]) -> list[WordSenses]:
    """Context vectors and sense posteriors of all occurrences of words.

    Args:
        model: A `keras_drill.LanguageModel` with a `KernelizedBayesianSoftmax`.
        dataset: As in `keras_drill.analysis.collect_hidden`.
        words: Ids of the words.

    Returns:
        A `WordSenses` for each of `words`; those that do not occur have no places.
    """
    head = model.head
    if not isinstance(head, KernelizedBayesianSoftmax):
        raise ValueError(
            "`model` must have a head with several senses a word, a KernelizedBayesianSoftmax. "
            f"Received: {type(head).__name__}"
        )
    places, targets, hidden = collect_hidden(model, dataset, words=words)
    posteriors = ops.convert_to_numpy(head.sense_posteriors(hidden, targets))  # [N, S]
    table = ops.convert_to_numpy(head.allocation.senses_of_word)
    collected = []
    for word in words:
        senses = table[word][table[word] >= 0]
        here = targets == word
        collected.append(
            WordSenses(word, senses, places[here], hidden[here], posteriors[here][:, : len(senses)])
        )
    return collected
