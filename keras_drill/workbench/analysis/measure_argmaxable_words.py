"""Finds the words of an output layer that can, or can never, be the most probable word."""

import numpy as np
from keras import ops

from keras_drill.compositions import MultiSense, Softmax
from keras_drill.output_layer import OutputLayer
from keras_drill.scores import InnerProduct
from keras_drill.workbench.analysis.argmaxable_words import (
    ArgmaxableWords,
    find_argmaxable_words,
    own_directions,
)
from keras_drill.workbench.analysis.float64_head import float64_head

_BLOCK = 256


def measure_argmaxable_words(
    head: OutputLayer,
    hidden: np.ndarray,
    bound: float = 100.0,
    min_lead: float = 1e-6,
    max_programs: int | None = None,
) -> ArgmaxableWords:
    """Sorts the words of an output layer by whether they can be the most probable word.

    Words that are the most probable word at the given hidden states are found for every output
    layer. For the other words, the method depends on the output layer:

    - Softmax of inner products: `find_argmaxable_words` decides all words.
    - Several senses per word: the search tries hidden states in the directions of each word's
      senses. Other words stay undecided, because no linear program describes them.
    - Mixture of softmaxes: all other words stay undecided.

    Args:
        head: A built `keras_drill.OutputLayer`.
        hidden: Hidden states of a text, `[N, d_h]`.
        bound: Largest absolute value of a hidden state's component in the search. For label
            encoders that map hidden states (bilinear, dual nonlinear), the bound applies to the
            mapped hidden states. Words that are unargmaxable for all of these are unargmaxable for
            the model.
        min_lead: Smallest lead in log-probability over all other words, in nats, with which a word
            counts as the most probable.
        max_programs: Maximum number of linear programs to solve; `None` solves all.

    Returns:
        An `ArgmaxableWords`.
    """
    seen = np.zeros(head.vocabulary_size, "bool")
    for start in range(0, len(hidden), _BLOCK):
        log_probs = head(hidden[start : start + _BLOCK])
        seen[ops.convert_to_numpy(ops.argmax(log_probs, axis=-1))] = True
    if isinstance(head.composition, Softmax) and isinstance(head.score, InnerProduct):
        # A soft cap on the logits keeps their order.
        labels = ops.convert_to_numpy(head.encoded_labels())
        bias = ops.convert_to_numpy(head.without_padding(head.bias)) if head.use_bias else None
        return find_argmaxable_words(labels, bias, seen, bound, min_lead, max_programs)
    found, searched = np.zeros_like(seen), None
    if isinstance(head.composition, MultiSense) and head.label_encoder.hidden_network is None:
        found, searched = _found_by_senses(head, seen, bound, min_lead), bound
    none = np.zeros_like(seen)
    return ArgmaxableWords(seen, found, none, ~(seen | found), searched, min_lead)


def _found_by_senses(
    head: OutputLayer, seen: np.ndarray, bound: float, min_lead: float
) -> np.ndarray:
    """Returns the words that are the most probable word in a direction of their senses, `[V]`."""
    exact = float64_head(head)
    words = ops.convert_to_numpy(head.composition.allocation.sense_to_word)  # [M]
    directions = own_directions(ops.convert_to_numpy(exact.encoded_labels()))  # [M, d]
    found = np.zeros_like(seen)
    for length in (bound / 100, bound / 10, bound):
        left = np.flatnonzero(~(seen | found)[words])
        for start in range(0, len(left), _BLOCK):
            senses = left[start : start + _BLOCK]
            log_probs = ops.convert_to_numpy(exact(length * directions[senses])).copy()
            rows = np.arange(len(senses))
            own = log_probs[rows, words[senses]]
            log_probs[rows, words[senses]] = -np.inf
            found[words[senses[own - log_probs.max(axis=1) > min_lead]]] = True
    return found
