"""V-measures and their confidence intervals."""

import numpy as np
from scipy.stats import t
from sklearn.metrics import v_measure_score

SHUFFLES = 20


def measure(gold: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """V-measure and purity, V-measure of the same senses shuffled, and how many are in use."""
    rng = np.random.default_rng(0)
    chance = [v_measure_score(gold, rng.permutation(found)) for _ in range(SHUFFLES)]
    purity = sum(np.bincount(gold[found == sense]).max() for sense in np.unique(found))
    return {
        "v": float(v_measure_score(gold, found)),
        "chance": float(np.mean(chance)),
        "purity": float(purity / len(gold)),
        "used": len(np.unique(found)),
    }


def interval(values: np.ndarray) -> str:
    """Mean over seeds, and half the width of its 95 % interval (Student's t)."""
    if len(values) < 2:
        return f"{np.mean(values):.3f}"
    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3f} ± {half:.3f}"


def difference(of_words: np.ndarray, than: np.ndarray) -> str:
    """How much more, with the 95 % interval of a bootstrap over words: `[words]` each."""
    rng = np.random.default_rng(0)
    gains = np.asarray(of_words) - np.asarray(than)
    means = gains[rng.integers(0, len(gains), (10_000, len(gains)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{gains.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
