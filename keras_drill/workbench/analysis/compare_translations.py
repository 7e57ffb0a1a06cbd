"""Compares translation systems by length, by word frequency and by sentence."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from keras_drill.metrics.text_scores import (
    References,
    TextScores,
    bleu_metric,
    check_texts,
    chrf_metric,
    score_texts,
    split_words,
)
from keras_drill.workbench.analysis.bins import bin_ends, bin_label
from keras_drill.workbench.analysis.paired_bootstrap import (
    PairedBootstrap,
    SystemScore,
    paired_bootstrap,
    paired_scores,
)
from keras_drill.workbench.analysis.word_accuracy import WordAccuracies, compare_word_accuracy

LENGTH_BOUNDARIES = (5, 10, 15, 20, 25, 30, 40, 50)


@dataclasses.dataclass(frozen=True)
class LengthBin:
    """BLEU of systems on the sentences whose sources have a similar number of words.

    Args:
        lower: Smallest number of words in the bin, included.
        upper: Number of words at which the bin ends, excluded; `None` for the last bin.
        sentences: Number of sentences in the bin.
        bleu: BLEU on these sentences by name of the system.
    """

    lower: int
    upper: int | None
    sentences: int
    bleu: dict[str, SystemScore]

    @property
    def label(self) -> str:
        """Label with the numbers of words in the bin: `0–4`, `5–9`, ..., `≥ 50`."""
        return bin_label(self.lower, self.upper)


@dataclasses.dataclass(frozen=True)
class SentenceDifference:
    """The scores of two systems on one sentence.

    Args:
        index: Number of the sentence, from 0.
        score_a: Score of system A, from 0 to 100.
        score_b: Score of system B.
    """

    index: int
    score_a: float
    score_b: float

    @property
    def difference(self) -> float:
        """Score of B minus score of A."""
        return self.score_b - self.score_a


@dataclasses.dataclass(frozen=True)
class TranslationComparison:
    """Result of `compare_translations`.

    Args:
        scores: Corpus scores by name of the system, in the order of the systems.
        bootstrap: BLEU and chrF with intervals, and p-values of the differences from the first
            system.
        by_length: BLEU by number of words in the source, short sources first, without empty bins.
        by_frequency: F1 of words by training-set frequency; `None` without training counts.
        differences: For each system except the first, the sentences with the largest differences
            from the first system: first the sentences with better scores, then those with worse
            scores. The first system is A in each `SentenceDifference`.
    """

    scores: dict[str, TextScores]
    bootstrap: PairedBootstrap
    by_length: tuple[LengthBin, ...]
    by_frequency: WordAccuracies | None
    differences: dict[str, tuple[SentenceDifference, ...]]


def compare_translations(
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str],
    references: References,
    training_counts: Mapping[str, int] | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
    num_examples: int = 5,
    resamples: int = 1000,
    seed: int = 12345,
) -> TranslationComparison:
    """Scores systems on the same test set, and compares them with the first system.

    Args:
        systems: Translations by name of the system. The first system is the baseline.
        sources: Sources of the translations. Only their lengths are used.
        references: References of the translations, see `score_texts`.
        training_counts: Number of occurrences of each word in the target side of the training set,
            from `count_words` with the same `tokenize` and `lowercase`.
        tokenize: sacrebleu's tokenizer, see `score_texts`.
        lowercase: Whether case is ignored.
        num_examples: Maximum number of sentences to find for each system, both where it is better
            than the first system and where it is worse.
        resamples: Number of bootstrap draws.
        seed: Seed of the draws, at least 1.

    Raises:
        ImportError: sacrebleu is not installed.

    Example:

    >>> compared = compare_translations(
    ...     {"first": ["a cat runs", "two men", "a hat"], "second": ["a dog runs", "two", "a hat"]},
    ...     sources=["ein Hund rennt", "zwei Männer", "ein roter Hut"],
    ...     references=["a dog runs", "two men", "a red hat"],
    ...     training_counts={"a": 700, "dog": 80, "runs": 60, "two": 50, "men": 50, "hat": 3},
    ... )
    >>> [round(scores.bleu_1, 1) for scores in compared.scores.values()]
    [74.3, 71.7]
    >>> [(each.index, round(each.difference)) for each in compared.differences["second"]]
    [(0, 74), (1, -56)]
    """
    bootstrap = paired_bootstrap(systems, references, tokenize, lowercase, resamples, seed)
    if len(sources) != len(references):
        raise ValueError(
            "`sources` and `references` must have the same length. "
            f"Received: {len(sources)} sources and {len(references)} references"
        )
    first, *others = systems
    by_frequency = None
    if training_counts is not None:
        by_frequency = compare_word_accuracy(
            systems,
            references,
            training_counts,
            tokenize=tokenize,
            lowercase=lowercase,
            resamples=resamples,
            seed=seed,
        )
    return TranslationComparison(
        scores={
            name: score_texts(hypotheses, references, tokenize, lowercase)
            for name, hypotheses in systems.items()
        },
        bootstrap=bootstrap,
        by_length=bleu_by_length(
            systems,
            references,
            lengths=[len(words) for words in split_words(sources, tokenize)],
            tokenize=tokenize,
            lowercase=lowercase,
            resamples=resamples,
            seed=seed,
        ),
        by_frequency=by_frequency,
        differences={
            name: largest_differences(
                systems[first], systems[name], references, num_examples, lowercase=lowercase
            )
            for name in others
        },
    )


def bleu_by_length(
    systems: Mapping[str, Sequence[str]],
    references: References,
    lengths: Sequence[int],
    boundaries: Sequence[int] = LENGTH_BOUNDARIES,
    tokenize: str = "13a",
    lowercase: bool = False,
    resamples: int = 1000,
    seed: int = 12345,
) -> tuple[LengthBin, ...]:
    """Computes BLEU by sentence length, with bootstrap intervals and p-values.

    Args:
        systems: Translations by name of the system. The first system is the baseline.
        references: References of the translations, see `score_texts`.
        lengths: Length of each sentence, for example the number of words of its source.
        boundaries: Lengths at which bins begin, increasing. Empty bins are dropped.
        tokenize: sacrebleu's tokenizer, see `score_texts`.
        lowercase: Whether case is ignored.
        resamples: Number of bootstrap draws in each bin.
        seed: Seed of the draws, at least 1.

    Example:

    >>> systems = {"only": ["a dog", "two men sit on a wall", "no"]}
    >>> bins = bleu_by_length(systems, ["a dog", "two men on a wall", "yes"], [2, 6, 1])
    >>> [(bin.label, bin.sentences, round(bin.bleu["only"].score)) for bin in bins]
    [('0–4', 2, 0), ('5–9', 1, 38)]
    """
    for name, hypotheses in systems.items():
        check_texts(hypotheses, references, f"systems[{name!r}]")
    if len(lengths) != len(references):
        raise ValueError(
            "`lengths` must have one number for each reference. "
            f"Received: {len(lengths)} numbers for {len(references)} references"
        )
    if min(lengths) < 0:
        raise ValueError(f"`lengths` must be at least 0. Received: {min(lengths)}")
    bins = []
    for lower, upper in bin_ends(boundaries):
        inside = [
            index
            for index, length in enumerate(lengths)
            if lower <= length and (upper is None or length < upper)
        ]
        if inside:
            scores = paired_scores(
                {name: [texts[index] for index in inside] for name, texts in systems.items()},
                [references[index] for index in inside],
                {"BLEU": bleu_metric(tokenize, lowercase)},
                resamples,
                seed,
            )
            bins.append(LengthBin(lower, upper, len(inside), scores["BLEU"][0]))
    return tuple(bins)


def largest_differences(
    hypotheses_a: Sequence[str],
    hypotheses_b: Sequence[str],
    references: References,
    number: int = 5,
    metric: Literal["chrf", "bleu"] = "chrf",
    tokenize: str = "13a",
    lowercase: bool = False,
) -> tuple[SentenceDifference, ...]:
    """Finds the sentences on which the scores of two systems differ most.

    Args:
        hypotheses_a: Translations of system A.
        hypotheses_b: Translations of system B.
        references: References of the translations, see `score_texts`.
        number: Maximum number of sentences to find for each system.
        metric: Metric of a sentence: "chrf", which also suits short sentences, or "bleu", which
            uses only n-grams up to the length of the sentence.
        tokenize: sacrebleu's tokenizer for BLEU, see `score_texts`.
        lowercase: Whether case is ignored.

    Returns:
        The sentences on which B is better, then those on which A is better. In each group the
        largest difference is first.

    Example:

    >>> found = largest_differences(["a cat", "men"], ["a dog", "man"], ["a dog", "men"], number=1)
    >>> [(each.index, each.difference > 0) for each in found]
    [(0, True), (1, False)]
    """
    check_texts(hypotheses_a, references, "hypotheses_a")
    check_texts(hypotheses_b, references, "hypotheses_b")
    if metric not in ("chrf", "bleu"):
        raise ValueError(f"`metric` must be 'chrf' or 'bleu'. Received: {metric!r}")
    scorer = (
        chrf_metric(lowercase)
        if metric == "chrf"
        else bleu_metric(tokenize, lowercase, effective_order=True)
    )

    def score(hypothesis: str, each: str | Sequence[str]) -> float:
        return scorer.sentence_score(hypothesis, [each] if isinstance(each, str) else each).score

    found = [
        SentenceDifference(index, score(a, each), score(b, each))
        for index, (a, b, each) in enumerate(
            zip(hypotheses_a, hypotheses_b, references, strict=True)
        )
    ]
    found.sort(key=lambda each: abs(each.difference), reverse=True)
    better = [each for each in found if each.difference > 0]
    worse = [each for each in found if each.difference < 0]
    return (*better[:number], *worse[:number])
