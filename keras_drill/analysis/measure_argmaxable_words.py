"""Which words a model can find the most probable."""

import numpy as np
from keras import ops

from keras_drill.analysis.argmaxable_words import ArgmaxableWords
from keras_drill.analysis.find_argmaxable_words import find_argmaxable_words
from keras_drill.compositions import Softmax
from keras_drill.output_layer import OutputLayer
from keras_drill.scores import InnerProduct

_BLOCK = 256


def measure_argmaxable_words(
    head: OutputLayer,
    hidden: np.ndarray,
    bound: float = 100.0,
    min_lead: float = 1e-6,
    max_programs: int | None = None,
) -> ArgmaxableWords:
    """Sorts the words of an output layer by whether they can be the most probable one.

    The most probable words at given hidden states are found for every output layer. For a softmax
    of inner products the others are decided by `find_argmaxable_words`; for output layers with
    several senses a word or mixtures they stay undecided, since no linear program describes
    those.

    Args:
        head: A built `keras_drill.OutputLayer`.
        hidden: Hidden states of a text, `[N, d_h]`.
        bound: Largest absolute value of a component of the hidden states to search. Where the
            label encoder maps hidden states (bilinear, dual nonlinear), that of the mapped ones:
            what is unargmaxable for all of these is unargmaxable for the model.
        min_lead: By how much a word must be ahead of all others, in nats.
        max_programs: Most linear programs to solve; `None` solves all that are needed.

    Returns:
        An `ArgmaxableWords`.
    """
    seen = np.zeros(head.vocabulary_size, "bool")
    for start in range(0, len(hidden), _BLOCK):
        log_probs = head(hidden[start : start + _BLOCK])
        seen[ops.convert_to_numpy(ops.argmax(log_probs, axis=-1))] = True
    if not (isinstance(head.composition, Softmax) and isinstance(head.score, InnerProduct)):
        none = np.zeros_like(seen)
        return ArgmaxableWords(seen, none, none, ~seen, None, min_lead)
    # A soft cap on the logits keeps their order.
    labels = ops.convert_to_numpy(head.encoded_labels())
    bias = ops.convert_to_numpy(head.bias) if head.use_bias else None
    return find_argmaxable_words(labels, bias, seen, bound, min_lead, max_programs)
