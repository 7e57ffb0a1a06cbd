"""Computes the largest lead of a word over all other words, by linear programming."""

import dataclasses

import numpy as np

_ADDED_AT_ONCE = 128
_MOST_ROUNDS = 200


@dataclasses.dataclass(frozen=True)
class Lead:
    """Lower and upper bound of a word's largest lead over all other words, in nats.

    Args:
        reached: Lead of the word at `hidden`, which is a lower bound.
        hidden: Hidden state with this lead, `[d]`.
        limit: Upper bound of the lead at all hidden states.
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
    """Decides whether a word's lead over all other words can exceed `min_lead`.

    The lead of word i at h is `min_j (w_i - w_j) · h + b_i - b_j`. Its maximum over the box
    `|h_k| <= bound` is a linear program. The program is solved with a growing set of other words:
    each round adds the words with the largest logits at the last solution. The rounds end if

    - the lead at a solution, computed with all words, exceeds `min_lead`; or
    - the dual solution proves that no lead exceeds `min_lead`. Any `λ_j >= 0` with `Σ λ_j = 1`
      gives the upper bound `bound |w_i - Σ λ_j w_j|_1 + b_i - Σ λ_j b_j`. The bound is computed
      from the dual values here, so it does not depend on the solver's precision.

    Args:
        word: Id of the word i.
        labels: Output labels of all words, `[V, d]`, float64.
        bias: Biases of all words, `[V]`, float64.
        bound: Largest absolute value of a component of h.
        hidden: Hidden state at which the search begins, `[d]`.
        min_lead: The lead to exceed, in nats.

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
