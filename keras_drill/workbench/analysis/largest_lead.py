"""By how much a word can at most be ahead of all others: a linear program."""

import dataclasses

import numpy as np

_ADDED_AT_ONCE = 128
_MOST_ROUNDS = 200


@dataclasses.dataclass(frozen=True)
class Lead:
    """What is known of a word's largest lead over all other words, in nats.

    Args:
        reached: Its lead at `hidden`: a lead that it reaches.
        hidden: Where, `[d]`.
        limit: A lead that it does not exceed anywhere.
    """

    reached: float
    hidden: np.ndarray
    limit: float


def largest_lead(
    word: int,
    labels: np.ndarray,
    bias: np.ndarray,
    bound: float,
    hidden: np.ndarray,
    min_lead: float,
) -> Lead:
    """Decides whether a word can be ahead of all others by `min_lead`.

    The lead of word i at h is `min_j (w_i - w_j) · h + b_i - b_j`. Its maximum over the box
    `|h_k| <= bound` is a linear program, solved here with those of the other words that matter:
    words are added where the solution so far is behind them, until

    - the lead at a solution, computed with all words, exceeds `min_lead`; or
    - the dual solution proves that it cannot. Any `λ_j >= 0` with `Σ λ_j = 1` gives the limit
      `bound |w_i - Σ λ_j w_j|_1 + b_i - Σ λ_j b_j`: the word is (nearly) a mixture of words whose
      mean bias is not lower. The limit is computed from the dual values here, so that it holds
      whatever the solver's precision.

    Args:
        word: The word i.
        labels: Output labels of all words, `[V, d]`, float64.
        bias: Their biases, `[V]`, float64.
        bound: Largest absolute value of a component of h.
        hidden: Where to begin, `[d]`.
        min_lead: The lead that decides, in nats.

    Raises:
        ModuleNotFoundError: SciPy is not installed.
    """
    from scipy.optimize import linprog  # optional: most words are decided without it

    dim = labels.shape[1]
    best = Lead(-np.inf, hidden, np.inf)
    rivals = np.empty(0, "int64")
    for _ in range(_MOST_ROUNDS):
        behind = labels @ hidden + bias
        lead_over = behind[word] - behind
        lead_over[word] = np.inf
        if lead_over.min() > best.reached:
            best = dataclasses.replace(best, reached=float(lead_over.min()), hidden=hidden)
        if best.reached > min_lead or best.limit <= min_lead:
            return best
        nearest = np.argpartition(lead_over, min(_ADDED_AT_ONCE, len(labels) - 1))
        added = np.setdiff1d(nearest[:_ADDED_AT_ONCE], [*rivals, word])
        if not added.size:
            return best
        rivals = np.concatenate([rivals, added])
        solved = linprog(
            c=np.append(np.zeros(dim), -1.0),
            A_ub=np.column_stack([labels[rivals] - labels[word], np.ones(len(rivals))]),
            b_ub=bias[word] - bias[rivals],
            bounds=[(-bound, bound)] * dim + [(None, None)],
            method="highs",
        )
        if solved.status != 0:
            return best
        weights = np.maximum(-solved.ineqlin.marginals, 0.0)
        if not weights.any():
            return best
        weights /= weights.sum()
        rest = labels[word] - weights @ labels[rivals]
        limit = bound * np.abs(rest).sum() + bias[word] - weights @ bias[rivals]
        best = dataclasses.replace(best, limit=min(best.limit, float(limit)))
        hidden = solved.x[:-1]
    return best
