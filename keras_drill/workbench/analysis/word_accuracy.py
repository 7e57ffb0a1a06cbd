"""Which words systems write where the reference has them: rare ones, or frequent ones."""

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
    """How many words of one bin a system wrote in the sentences whose references have them.

    Args:
        matched: Words of the system that the same sentence's reference has too, each at most as
            often as there.
        written: All words of the system.
        wanted: All words of the references.
        interval: Ends of the bootstrap interval of `f1`; NaN where it is, and when the bin occurs
            in fewer than two sentences.
        difference: `f1` less that of the first system; NaN for the first.
        difference_interval: Ends of the paired bootstrap interval of `difference`; NaN where
            it is, and where `interval` is.
    """

    matched: int
    written: int
    wanted: int
    interval: tuple[float, float]
    difference: float
    difference_interval: tuple[float, float]

    @property
    def precision(self) -> float:
        """Share of the system's words that are right; NaN without any."""
        return self.matched / self.written if self.written else math.nan

    @property
    def recall(self) -> float:
        """Share of the references' words that the system wrote; NaN without any."""
        return self.matched / self.wanted if self.wanted else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of the two, `2 matched / (written + wanted)`; NaN without words."""
        words = self.written + self.wanted
        return 2 * self.matched / words if words else math.nan

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the difference to the first system leaves out zero."""
        low, high = self.difference_interval
        return low > 0 or high < 0


@dataclasses.dataclass(frozen=True)
class WordAccuracyBin:
    """The words that are so frequent in the training set.

    Args:
        lower: Smallest training count in the bin, included.
        upper: Training count at which the bin ends, excluded; `None` for the last bin.
        types: Number of different words among the references' words of the bin.
        systems: Name of each system to its accuracy.
    """

    lower: int
    upper: int | None
    types: int
    systems: dict[str, WordAccuracy]

    @property
    def label(self) -> str:
        """The counts in the bin: `unseen`, `1–49`, `50–99`, ..., `≥ 5000`."""
        return frequency_label(self.lower, self.upper)

    @property
    def wanted(self) -> int:
        """Words of the references in the bin."""
        return next(iter(self.systems.values())).wanted


@dataclasses.dataclass(frozen=True)
class WordAccuracies:
    """Word accuracy of systems by training-set frequency, made by `compare_word_accuracy`.

    Args:
        bins: The bins, rarest words first.
        overall: All words as one bin.
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
    """F1 of words by how often they occur in the training set.

    BLEU is an average over words as frequent as texts have them, in which rare ones hardly count.
    Here a word w of a sentence is right as often as `min(written, wanted)`, its occurrences in the
    system's text and in the reference, and each bin of training counts has its own precision,
    recall and F1. Intervals are from sentences drawn with replacement, the same ones for all
    systems; the variation between training runs with different seeds is not in them.

    Args:
        systems: Name of each system to its texts; the others are compared with the first.
        references: What each text should have been; of several only the first counts.
        training_counts: How often each word occurs in the target side of the training set, by
            `count_words` with the same `tokenize` and `lowercase`.
        boundaries: Where bins begin, increasing; words that were never seen get a bin of their own
            where there are any.
        tokenize: sacrebleu's tokenizer, which makes the words, see `score_texts`.
        lowercase: Whether upper and lower case count as equal.
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
        raise ValueError("`systems` must be one or several systems. Received: none")
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
    """Words by bin, all bins together last. Shape letters: S systems, N sentences, B bins + 1.

    Args:
        by_sentence: Matched, written and wanted words, `[3, S, N, B]`.
        occurs_in: Sentences in which a text or the reference has words of the bin, `[B]`.
        types: Number of different words of the references, `[B]`.
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
    """`[3, S, B]` to `[S, B]`, NaN without words."""
    matched, written, wanted = counts
    with np.errstate(invalid="ignore"):
        return 2 * matched / (written + wanted)


def _resampled_f1(by_sentence: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """F1 when sentences are drawn with replacement, `[3, S, N, B]` to `[resamples, S, B]`."""
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
    """Percentile intervals, by system and bin; NaN for bins of fewer than two sentences."""
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
