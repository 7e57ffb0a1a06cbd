"""Measures the accuracy of words in translations by their frequency in the training set."""

import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_drill.metrics.text_scores import References, check_texts, split_words
from keras_drill.workbench.analysis.bins import bin_ends, frequency_label
from keras_drill.workbench.analysis.compare_by_frequency import FREQUENCY_BOUNDARIES


@dataclasses.dataclass(frozen=True)
class WordAccuracy:
    """Precision, recall and F1 of a system's words in one bin.

    Args:
        matched: Number of the system's words that also occur in the reference of the same sentence.
            A word counts at most as often as it occurs in the reference.
        written: Number of the system's words.
        wanted: Number of words of the references.
        interval: Ends of the bootstrap interval of `f1`; NaN if `f1` is NaN, or if fewer than two
            sentences have words of the bin.
        difference: `f1` minus the first system's `f1`; NaN for the first system.
        difference_interval: Ends of the paired bootstrap interval of `difference`; NaN if
            `difference` or `interval` is NaN.
    """

    matched: int
    written: int
    wanted: int
    interval: tuple[float, float]
    difference: float
    difference_interval: tuple[float, float]

    @property
    def precision(self) -> float:
        """Share of the system's words that match; NaN if the system has no words."""
        return self.matched / self.written if self.written else math.nan

    @property
    def recall(self) -> float:
        """Share of the references' words that match; NaN if the references have no words."""
        return self.matched / self.wanted if self.wanted else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, `2 matched / (written + wanted)`.

        NaN if neither the system nor the references have words.
        """
        words = self.written + self.wanted
        return 2 * self.matched / words if words else math.nan

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the difference to the first system excludes 0."""
        low, high = self.difference_interval
        return low > 0 or high < 0


@dataclasses.dataclass(frozen=True)
class WordAccuracyBin:
    """Accuracy of systems on the words with similar training counts.

    Args:
        lower: Smallest training count in the bin, included.
        upper: Training count at which the bin ends, excluded; `None` for the last bin.
        types: Number of distinct words among the references' words of the bin.
        systems: Accuracy by name of the system.
    """

    lower: int
    upper: int | None
    types: int
    systems: dict[str, WordAccuracy]

    @property
    def label(self) -> str:
        """Label with the training counts of the bin: `unseen`, `1–49`, `50–99`, ..., `≥ 5000`."""
        return frequency_label(self.lower, self.upper)

    @property
    def wanted(self) -> int:
        """Number of words of the references in the bin."""
        return next(iter(self.systems.values())).wanted


@dataclasses.dataclass(frozen=True)
class WordAccuracies:
    """Result of `compare_word_accuracy`.

    Args:
        bins: The bins, rarest words first.
        overall: One bin with all words.
        confidence: Coverage of the bootstrap intervals, for example 0.95.
    """

    bins: tuple[WordAccuracyBin, ...]
    overall: WordAccuracyBin
    confidence: float


def compare_word_accuracy(
    systems: Mapping[str, Sequence[str]],
    references: References,
    training_counts: Mapping[str, int],
    boundaries: Sequence[int] = FREQUENCY_BOUNDARIES,
    tokenize: str = "13a",
    lowercase: bool = False,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> WordAccuracies:
    """Computes precision, recall and F1 of words by their frequency in the training set.

    BLEU is an average over all words of a text, to which rare words contribute little. Here each
    bin of training counts has its own precision, recall and F1. A word that occurs `written` times
    in a translation and `wanted` times in its reference matches `min(written, wanted)` times.

    The bootstrap draws sentences with replacement, the same sentences for all systems. The
    intervals do not include the variation between training runs with different seeds.

    Args:
        systems: Translations by name of the system. The first system is the baseline.
        references: References of the translations. Of several references of a sentence, only the
            first is used.
        training_counts: Number of occurrences of each word in the target side of the training set,
            from `count_words` with the same `tokenize` and `lowercase`.
        boundaries: Counts at which bins begin, increasing. Words with a training count of 0 have a
            separate bin, which is dropped if empty.
        tokenize: sacrebleu's tokenizer, which splits texts into words, see `score_texts`.
        lowercase: Whether case is ignored.
        resamples: Number of bootstrap draws.
        confidence: Coverage of the bootstrap intervals.
        seed: Seed of the bootstrap.

    Raises:
        ImportError: sacrebleu is not installed.

    Example:

    >>> compared = compare_word_accuracy(
    ...     {"first": ["the dog", "a cat"], "second": ["the dachshund", "a cat"]},
    ...     references=["the dachshund", "the cat"],
    ...     training_counts={"the": 700, "a": 900, "cat": 70, "dog": 80, "dachshund": 1},
    ...     boundaries=(1, 50, 500),
    ... )
    >>> for bin in compared.bins:
    ...     print(bin.label, [round(system.f1, 2) for system in bin.systems.values()])
    1–49 [0.0, 1.0]
    50–499 [0.67, 1.0]
    ≥ 500 [0.5, 0.5]

    References:

    - [Neubig et al., 2019](https://arxiv.org/abs/1903.07926), "compare-mt: A Tool for Holistic
      Comparison of Language Generation Systems"
    """
    if not systems:
        raise ValueError("`systems` must have at least one system. Received: systems={}")
    if resamples < 1 or not 0 < confidence < 1:
        raise ValueError(
            "`resamples` must be at least 1, and `confidence` between 0 and 1. "
            f"Received: resamples={resamples}, confidence={confidence}"
        )
    for name, hypotheses in systems.items():
        check_texts(hypotheses, references, f"systems[{name!r}]")
    counted = _count(systems, references, training_counts, boundaries, tokenize, lowercase)
    f1 = _f1(counted.by_sentence.sum(axis=2))
    drawn = _resampled_f1(counted.by_sentence, resamples, seed)
    intervals = _intervals(drawn, counted.occurs_in, confidence)
    differences = _intervals(drawn - drawn[:, :1], counted.occurs_in, confidence)

    def bin_at(place: int, lower: int, upper: int | None) -> WordAccuracyBin:
        totals = counted.by_sentence[..., place].sum(axis=2)  # [3, systems]
        accuracies = {
            name: WordAccuracy(
                matched=int(totals[0, system]),
                written=int(totals[1, system]),
                wanted=int(totals[2, system]),
                interval=intervals[system][place],
                difference=float(f1[system, place] - f1[0, place]) if system else math.nan,
                difference_interval=differences[system][place] if system else (math.nan, math.nan),
            )
            for system, name in enumerate(systems)
        }
        return WordAccuracyBin(lower, upper, counted.types[place], accuracies)

    bins = [bin_at(place, *ends) for place, ends in enumerate(bin_ends(boundaries))]
    return WordAccuracies(
        bins=tuple(bins if counted.occurs_in[0] else bins[1:]),
        overall=bin_at(len(bins), 0, None),
        confidence=confidence,
    )


class _Counted(NamedTuple):
    """Counts of words by bin. The last bin has all words.

    Shapes: S is the number of systems, N of sentences, and B of bins plus 1.

    Args:
        by_sentence: Numbers of matched, written and wanted words, `[3, S, N, B]`.
        occurs_in: Number of sentences whose translations or reference have words of the bin, `[B]`.
        types: Number of distinct words of the references, `[B]`.
    """

    by_sentence: np.ndarray
    occurs_in: np.ndarray
    types: list[int]


def _count(
    systems: Mapping[str, Sequence[str]],
    references: References,
    training_counts: Mapping[str, int],
    boundaries: Sequence[int],
    tokenize: str,
    lowercase: bool,
) -> _Counted:
    num_bins = len(bin_ends(boundaries))

    def bag_of_words(texts: Sequence[str]) -> list[collections.Counter[str]]:
        return [collections.Counter(words) for words in split_words(texts, tokenize, lowercase)]

    def by_bin(bags: Sequence[collections.Counter[str]]) -> np.ndarray:  # [N, B]
        table = np.zeros((len(bags), num_bins + 1))
        for row, bag in zip(table, bags, strict=True):
            for word, number in bag.items():
                row[np.searchsorted(boundaries, training_counts.get(word, 0), side="right")] += (
                    number
                )
        table[:, -1] = table.sum(axis=1)
        return table

    wanted = bag_of_words([each if isinstance(each, str) else each[0] for each in references])
    counts = []
    for hypotheses in systems.values():
        written = bag_of_words(hypotheses)
        matched = [a & b for a, b in zip(written, wanted, strict=True)]
        counts.append(np.stack([by_bin(matched), by_bin(written), by_bin(wanted)]))
    by_sentence = np.stack(counts, axis=1)
    types = by_bin([collections.Counter(set().union(*wanted))])[0]
    return _Counted(
        by_sentence=by_sentence,
        occurs_in=np.count_nonzero(by_sentence.any(axis=(0, 1)), axis=0),
        types=[int(number) for number in types],
    )


def _f1(counts: np.ndarray) -> np.ndarray:
    """Computes F1 from counts, `[3, S, B]` to `[S, B]`; NaN for bins without words."""
    matched, written, wanted = counts
    with np.errstate(invalid="ignore"):
        return 2 * matched / (written + wanted)


def _resampled_f1(by_sentence: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Computes F1 on resampled sentences, `[3, S, N, B]` to `[resamples, S, B]`."""
    generator = np.random.default_rng(seed)
    sentences = by_sentence.shape[2]
    drawn = []
    for _ in range(resamples):  # one at a time: all at once needs [resamples, N]
        times = np.bincount(generator.integers(sentences, size=sentences), minlength=sentences)
        drawn.append(_f1(np.einsum("n,ksnb->ksb", times, by_sentence)))
    return np.stack(drawn)


def _intervals(
    drawn: np.ndarray, occurs_in: np.ndarray, confidence: float
) -> list[list[tuple[float, float]]]:
    """Computes percentile intervals by system and bin; NaN for bins in fewer than two sentences."""
    tail = (1 - confidence) / 2

    def interval(values: np.ndarray, sentences: int) -> tuple[float, float]:
        values = values[np.isfinite(values)]  # a rare bin is missing from some draws
        if sentences < 2 or not values.size:
            return math.nan, math.nan
        low, high = np.quantile(values, [tail, 1 - tail])
        return float(low), float(high)

    return [
        [interval(drawn[:, system, place], each) for place, each in enumerate(occurs_in)]
        for system in range(drawn.shape[1])
    ]
