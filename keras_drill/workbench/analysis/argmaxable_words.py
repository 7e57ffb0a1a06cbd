"""Finds the words that can be the most probable one, and the words that never can."""

import dataclasses
import importlib.util

import numpy as np

from keras_drill.workbench.analysis.largest_lead import largest_lead

_BLOCK = 512  # words whose logits [512, V] are in memory at a time


@dataclasses.dataclass(frozen=True)
class ArgmaxableWords:
    """Words of an output layer, sorted by whether they can be the most probable word.

    This is the result of `keras_drill.workbench.analysis.find_argmaxable_words`. Every word is in
    exactly one of the four sets `on_text`, `found`, `unargmaxable` and `undecided`.

    Args:
        on_text: Words that were the most probable word at some position of a text, `[V]` bool.
        found: Other words that are the most probable word at some hidden state, which the search
            found, `[V]` bool.
        unargmaxable: Words proven never to be the most probable word, `[V]` bool.
        undecided: Words for which neither is proven, `[V]` bool.
        bound: Largest absolute value of a hidden state's component in the search; `None` without
            a search.
        min_lead: Smallest lead in log-probability over all other words, in nats, with which a word
            counts as the most probable.
    """

    on_text: np.ndarray
    found: np.ndarray
    unargmaxable: np.ndarray
    undecided: np.ndarray
    bound: float | None
    min_lead: float

    def counts(self) -> dict[str, int]:
        """Returns the number of words of each set, by name of the set."""
        names = ("on_text", "found", "unargmaxable", "undecided")
        return {name: int(getattr(self, name).sum()) for name in names}


def find_argmaxable_words(
    labels: np.ndarray,
    bias: np.ndarray | None = None,
    on_text: np.ndarray | None = None,
    bound: float = 100.0,
    min_lead: float = 1e-6,
    max_programs: int | None = None,
) -> ArgmaxableWords:
    """Sorts the words of a softmax by whether any hidden state makes them the most probable.

    A word is called argmaxable if it is the most probable word at some hidden state h. With logits
    `w_i · h + b_i`, this is true exactly for the words whose points `(w_i, b_i)` lie on the upper
    part of the convex hull of all points. Greedy decoding never chooses a word inside the hull,
    whatever the rest of the model is.

    The first of these steps that succeeds decides about a word:

    1. Words that were the most probable word in a text need no search.
    2. The search tries hidden states in the word's own direction (`own_directions`) at several
       lengths. This finds a hidden state, which is a proof, for nearly all words of a real model.
    3. `largest_lead` solves a linear program for each remaining word, and proves either case.

    The results hold for hidden states with components of at most `bound`. Words in `unargmaxable`
    are nowhere ahead by more than `min_lead` nats. Hidden states of an LSTM or a GRU have
    components of at most 1.

    Args:
        labels: Output labels `[V, d]`.
        bias: Biases of the words, `[V]`; `None` for no bias.
        on_text: Words known to be the most probable word at some position, `[V]` bool or ids.
        bound: Largest absolute value of a hidden state's component.
        min_lead: Smallest lead in log-probability over all other words, in nats, with which a word
            counts as the most probable.
        max_programs: Maximum number of linear programs to solve; further words stay undecided.
            `None` solves all programs. Without SciPy no program is solved.

    Returns:
        An `ArgmaxableWords`.

    Example:

    Of the corners of a square and its centre, the centre is never farthest in any direction:

    >>> labels = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]])
    >>> find_argmaxable_words(labels).unargmaxable
    array([False, False, False, False,  True])

    With a bias for the centre only, the centre is the most probable word at `h = 0`:

    >>> find_argmaxable_words(labels, bias=np.array([0, 0, 0, 0, 1])).unargmaxable.any()
    np.False_

    References:
        - [Demeter et al., 2020](https://arxiv.org/abs/2005.02433), "Stolen Probability"
        - [Grivas et al., 2022](https://arxiv.org/abs/2203.06462), "Low-Rank Softmax Can Have
          Unargmaxable Classes in Theory but Rarely in Practice"
    """
    labels = np.asarray(labels, "float64")
    if labels.ndim != 2 or not len(labels):
        raise ValueError(
            f"`labels` must be a matrix with at least one row. Received: shape {labels.shape}"
        )
    size = len(labels)
    bias = np.zeros(size) if bias is None else np.asarray(bias, "float64")
    if bias.shape != (size,):
        raise ValueError(
            f"`bias` must have one value for each of the {size} labels. Received: "
            f"shape {bias.shape}"
        )
    if not (np.isfinite(labels).all() and np.isfinite(bias).all()):
        raise ValueError(
            "`labels` and `bias` must be finite. Received: NaN or infinity in "
            f"`{'bias' if np.isfinite(labels).all() else 'labels'}`"
        )
    if bound <= 0 or min_lead <= 0:
        raise ValueError(
            f"`bound` and `min_lead` must be positive. Received: bound={bound}, min_lead={min_lead}"
        )
    seen = np.zeros(size, "bool")
    if on_text is not None:
        seen[np.asarray(on_text)] = True
    found, unargmaxable = np.zeros(size, "bool"), np.zeros(size, "bool")

    directions = own_directions(labels)
    begin = np.zeros_like(labels)  # the best hidden state found so far
    leads = np.full(size, -np.inf)
    for length in (bound / 100, bound / 10, bound):
        left = np.flatnonzero(~seen & ~found)
        for start in range(0, len(left), _BLOCK):
            words = left[start : start + _BLOCK]
            hidden = length * directions[words]
            reached = _leads(words, hidden, labels, bias)
            better = reached > leads[words]
            leads[words[better]], begin[words[better]] = reached[better], hidden[better]
        found |= ~seen & (leads > min_lead)

    left = np.flatnonzero(~seen & ~found)
    if importlib.util.find_spec("scipy") is None:
        left = left[:0]
    for word in left[:max_programs]:
        lead = largest_lead(word, labels, bias, bound, begin[word], min_lead)
        found[word] = lead.reached > min_lead
        unargmaxable[word] = lead.limit <= min_lead
    undecided = ~(seen | found | unargmaxable)
    return ArgmaxableWords(seen, found, unargmaxable, undecided, bound, min_lead)


def _leads(
    words: np.ndarray, hidden: np.ndarray, labels: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """Computes the lead of each word over all other words at its own hidden state, `[n]`."""
    scores = hidden @ labels.T + bias  # [n, V]
    rows = np.arange(len(words))
    own = scores[rows, words]
    scores[rows, words] = -np.inf
    return own - scores.max(axis=1)


def own_directions(labels: np.ndarray) -> np.ndarray:
    """Computes for each label the direction that separates it best from all other labels.

    The direction is `C⁻¹ (w_i - mean)`, with C the covariance of the labels. It maximizes the ratio
    of the label's distance from the mean to the spread of all labels.

    Args:
        labels: `[V, d]`.

    Returns:
        `[V, d]`, scaled to a largest component of ±1; zeros for a label that equals the mean.

    Example:

    >>> own_directions(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 9.0], [0.0, -9.0]])).tolist()
    [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    """
    centred = labels - labels.mean(axis=0)
    directions = centred @ np.linalg.pinv(centred.T @ centred / len(labels), hermitian=True)
    greatest = np.abs(directions).max(axis=1, keepdims=True)
    return np.divide(directions, greatest, out=np.zeros_like(directions), where=greatest > 0)
