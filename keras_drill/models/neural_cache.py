"""The neural cache, which raises the probability of words that followed similar hidden states."""

import numpy as np

_ROWS = 512  # size of a block of similarities, which are never completely in memory


def add_neural_cache(
    log_probs: np.ndarray,
    hidden: np.ndarray,
    targets: np.ndarray,
    size: int,
    theta: float,
    weight: float,
) -> np.ndarray:
    """Computes log-probabilities of a text's targets by a language model with a neural cache.

    The cache makes words that occurred recently, after similar hidden states, more probable. For
    each of the last n targets x_i of the text, the cache stores the hidden state h_i that predicted
    it. The cache's probability of the target x_t is

        p_cache(x_t) = sum_{i: x_i = x_t} exp(theta * h_t . h_i) / sum_i exp(theta * h_t . h_i)

    with i from t - n to t - 1 (fewer at the beginning of the text). The result is

        log((1 - weight) * p_model(x_t) + weight * p_cache(x_t)).

    For the first target the cache is empty, so its log-probability does not change.

    The method needs no training and works with any output layer, since it only uses the model's
    hidden states and the log-probabilities of the targets.

    Args:
        log_probs: `[N]`, the model's log-probabilities of the N targets, in the order of the text.
            `DynamicEvaluator.evaluate` with `learning_rate=0` and `keep_hidden=True` computes
            `log_probs`, `hidden` and `targets`.
        hidden: `[N, d]`, the hidden states of width d that predicted the targets.
        targets: `[N]` integers.
        size: Number n of stored hidden states, from 1 to N - 1.
        theta: Factor of the similarity of hidden states, at least 0. With 0, all stored states have
            the same weight.
        weight: Weight of the cache, in [0, 1).

    Returns:
        Float64 array `[N]`, the log-probabilities with the cache.

    Raises:
        ValueError: Shapes do not match, or an argument is out of range.

    Example:

    >>> log_probs, hidden = np.log([0.5, 0.25, 0.25]), np.eye(3, 2)
    >>> np.exp(keras_drill.models.add_neural_cache(log_probs, hidden, [4, 1, 4], 2, 0.0, 0.2))
    array([0.5, 0.2, 0.3])

    References:
        - [Grave et al., 2017](https://arxiv.org/abs/1612.04426)
    """
    log_probs = np.asarray(log_probs, "float64")
    if log_probs.ndim != 1 or np.shape(targets) != log_probs.shape:
        raise ValueError(
            "`log_probs` and `targets` must be vectors of the same length. Received: "
            f"log_probs of shape {log_probs.shape}, targets of shape {np.shape(targets)}"
        )
    if not 0 <= weight < 1:
        raise ValueError(f"`weight` must be in [0, 1). Received: weight={weight}")
    return mix_cache(log_probs, cache_log_probs(hidden, targets, size, theta), weight)


def cache_log_probs(hidden: np.ndarray, targets: np.ndarray, size: int, theta: float) -> np.ndarray:
    """Computes the log-probability of each target by the cache alone, float64 `[N]`.

    The result is minus infinity if the word is not in the cache, which is empty at the first
    target. See `add_neural_cache` for the arguments.
    """
    hidden, targets = np.asarray(hidden, "float64"), np.asarray(targets)
    number = len(targets)
    if hidden.ndim != 2 or len(hidden) != number:
        raise ValueError(
            f"`hidden` must be of shape [{number}, d]: one row, of any width d, for each target. "
            f"Received: shape {hidden.shape}"
        )
    if not 1 <= size < number:
        raise ValueError(
            f"`size` must be at least 1 and less than the {number} targets of the text: a longer "
            f"cache is never filled. Received: size={size}"
        )
    if not 0 <= theta < np.inf:
        raise ValueError(f"`theta` must be finite and not negative. Received: theta={theta}")
    found = np.full(number, -np.inf)
    for start in range(1, number, _ROWS):
        stop = min(start + _ROWS, number)
        first = max(start - size, 0)
        ages = np.arange(start, stop)[:, None] - np.arange(first, stop)  # [rows, columns]
        scores = theta * (hidden[start:stop] @ hidden[first:stop].T)
        scores[(ages < 1) | (ages > size)] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        same = targets[start:stop, None] == targets[first:stop]
        with np.errstate(divide="ignore"):
            found[start:stop] = np.log((weights * same).sum(axis=1)) - np.log(weights.sum(axis=1))
    return found


def mix_cache(log_probs: np.ndarray, cached: np.ndarray, weight: float) -> np.ndarray:
    """Mixes the probabilities of model and cache, float64 `[N]`; see `add_neural_cache`."""
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(np.log1p(-weight) + log_probs, np.log(weight) + cached)
    mixed[0] = log_probs[0]
    return mixed
