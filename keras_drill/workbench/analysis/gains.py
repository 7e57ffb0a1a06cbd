"""Computes gains of one model over another on the same text, with bootstrap intervals."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_drill.metrics.text_scores import bleu_metric, check_texts


@dataclasses.dataclass(frozen=True)
class Gain:
    """A difference between two models, positive if the first model is better.

    Args:
        value: The difference.
        interval: Ends of the 95 % bootstrap interval of the difference. The bootstrap draws lines,
            the same lines for both models. The interval does not include the variation between
            training runs.
    """

    value: float
    interval: tuple[float, float]


def log_prob_gain(
    savings: np.ndarray, counts: np.ndarray, resamples: int = 1000, seed: int = 0
) -> Gain:
    """Computes the mean gain in log-probability per unit, such as a word or a byte.

    Args:
        savings: For each line, the log-probability under the first model minus the log-probability
            under the second model, `[lines]`.
        counts: Number of units of each line, `[lines]`; not all 0.
        resamples: Number of bootstrap draws.
        seed: Seed of the bootstrap.

    Example:

    >>> gain = log_prob_gain(np.array([2.0, 4.0, 0.0]), np.array([4, 4, 4]))
    >>> gain.value, 0 <= gain.interval[0] < 0.5 < gain.interval[1] <= 1
    (0.5, True)
    """
    if savings.shape != counts.shape or not counts.sum() > 0:
        raise ValueError(
            "`savings` and `counts` must have one value for each line, and `counts` must not be "
            "all 0. "
            f"Received: savings of shape {savings.shape}, counts of shape {counts.shape} with sum "
            f"{counts.sum()}"
        )
    table = np.stack([savings, counts], axis=1).astype("float64")

    def ratio(sums: np.ndarray) -> float:
        return sums[0] / sums[1] if sums[1] else 0.0

    return _bootstrap(table, ratio, resamples, seed)


def bleu_gain(
    texts: Sequence[str],
    others: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Gain:
    """Computes the gain in BLEU of a model's outputs over another model's, with sacrebleu.

    Args:
        texts: Outputs of the first model, one per line.
        others: Outputs of the second model.
        references: References of the outputs.
        tokenize: sacrebleu's tokenizer, see `score_texts`.
        lowercase: Whether case is ignored.
        resamples: Number of bootstrap draws.
        seed: Seed of the bootstrap.

    Example:

    >>> right, wrong = ["A dog runs fast ."] * 7, ["The cats ran away ."] * 7
    >>> gain = bleu_gain(right, wrong, right)
    >>> gain.value > 90, gain.interval[0] > 90
    (True, True)

    References:
        - Koehn, "Statistical Significance Tests for Machine Translation Evaluation", EMNLP 2004.
    """
    check_texts(texts, references)
    check_texts(others, references)
    metric = bleu_metric(tokenize, lowercase)

    def counted(text: str, reference: str) -> list[int]:
        told = metric.corpus_score([text], [[reference]])
        return [told.sys_len, told.ref_len, *told.counts, *told.totals]

    table = np.array(
        [
            counted(text, reference) + counted(other, reference)
            for text, other, reference in zip(texts, others, references, strict=True)
        ]
    )
    half = table.shape[1] // 2

    def bleu(sums: Any) -> float:
        order = (half - 2) // 2
        told = [int(each) for each in sums]
        return metric.compute_bleu(
            correct=told[2 : 2 + order],
            total=told[2 + order :],
            sys_len=told[0],
            ref_len=told[1],
            smooth_method="exp",
        ).score

    return _bootstrap(table, lambda sums: bleu(sums[:half]) - bleu(sums[half:]), resamples, seed)


def _bootstrap(
    table: np.ndarray, statistic: Callable[[np.ndarray], float], resamples: int, seed: int
) -> Gain:
    """Computes a statistic of the sum of a table's rows, `[lines, n]`, with its interval."""
    generator = np.random.default_rng(seed)
    lines = len(table)
    drawn = [
        statistic(np.bincount(generator.integers(lines, size=lines), minlength=lines) @ table)
        for _ in range(resamples)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Gain(float(statistic(table.sum(axis=0))), (float(low), float(high)))
