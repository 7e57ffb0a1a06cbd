"""Tests the significance of differences in BLEU and chrF by paired bootstrap resampling."""

import contextlib
import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_drill.metrics.text_scores import (
    References,
    bleu_metric,
    check_texts,
    chrf_metric,
    reference_streams,
)

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


@dataclasses.dataclass(frozen=True)
class SystemScore:
    """A system's score by one metric, with its bootstrap interval and p-value.

    Args:
        score: The score of the corpus.
        mean: Mean of the scores of the resampled corpora.
        interval: Ends of the 95 % interval around `mean`. Its width is the range of the resampled
            scores without the lowest and the highest 2.5 %. NaN for a single sentence.
        p_value: Probability of a difference from the first system of at least this size, if both
            systems are equally good; `None` for the first system, and for a single sentence.
    """

    score: float
    mean: float
    interval: tuple[float, float]
    p_value: float | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the p-value is below 0.05."""
        return self.p_value is not None and self.p_value < 0.05


@dataclasses.dataclass(frozen=True)
class PairedBootstrap:
    """Result of `paired_bootstrap`.

    Args:
        bleu: BLEU by name of the system, in the order of the systems.
        chrf: chrF by name of the system.
        bleu_signature: sacrebleu's signature of `bleu`, with the number of resamples and the seed.
        chrf_signature: sacrebleu's signature of `chrf`.
    """

    bleu: dict[str, SystemScore]
    chrf: dict[str, SystemScore]
    bleu_signature: str
    chrf_signature: str


def paired_bootstrap(
    systems: Mapping[str, Sequence[str]],
    references: References,
    tokenize: str = "13a",
    lowercase: bool = False,
    resamples: int = 1000,
    seed: int = 12345,
) -> PairedBootstrap:
    """Compares systems with the first system by paired bootstrap resampling, with sacrebleu.

    Each resample is a corpus of the same size whose sentences are drawn from the test set with
    replacement, the same sentences for all systems. Let d be the difference of two systems on the
    test set, and d_i their difference on resample i. The p-value is
    `(1 + #{i: |d_i| - mean |d_i| > |d|}) / (1 + resamples)`, or 1 if d = 0. Except for d = 0, the
    command `sacrebleu --paired-bs` prints the same value for the same seed. The p-value does not
    include the variation between training runs with different seeds.

    Args:
        systems: Translations by name of the system. The first system is the baseline.
        references: References of the translations, see `score_texts`.
        tokenize: sacrebleu's tokenizer for BLEU, see `score_texts`.
        lowercase: Whether case is ignored.
        resamples: Number of resampled corpora.
        seed: Seed of the draws, at least 1 (0 means no seed in sacrebleu).

    Raises:
        ImportError: sacrebleu is not installed.

    Example:

    >>> references = ["A dog runs.", "Two men sit.", "A girl sings."]
    >>> systems = {"first": ["A cat ran.", "Two men sit.", "A boy sat."], "second": references}
    >>> compared = paired_bootstrap(systems, references, resamples=100)
    >>> compared.chrf["second"].score, compared.chrf["second"].interval
    (100.0, (100.0, 100.0))
    >>> compared.chrf_signature
    'nrefs:1|bs:100|seed:12345|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2...'

    References:

    - [Koehn, 2004](https://aclanthology.org/W04-3250), "Statistical Significance Tests for Machine
      Translation Evaluation"
    """
    _check(systems, references, resamples, seed)
    metrics = {"BLEU": bleu_metric(tokenize, lowercase), "chrF": chrf_metric(lowercase)}
    (bleu, bleu_signature), (chrf, chrf_signature) = paired_scores(
        systems, references, metrics, resamples, seed
    ).values()
    return PairedBootstrap(bleu, chrf, bleu_signature, chrf_signature)


def paired_scores(
    systems: Mapping[str, Sequence[str]],
    references: References,
    metrics: "Mapping[str, Metric]",
    resamples: int,
    seed: int,
) -> dict[str, tuple[dict[str, SystemScore], str]]:
    """Returns for each metric the scores of all systems and the metric's signature.

    Args:
        systems: Translations by name of the system. The first system is the baseline.
        references: References of the translations, see `score_texts`.
        metrics: sacrebleu's metrics by name.
        resamples: Number of resampled corpora.
        seed: Seed of the draws, at least 1.
    """
    from sacrebleu.significance import PairedTest

    with _sacrebleu_seed(seed):
        test = PairedTest(
            list(systems.items()),
            metrics,
            reference_streams(references),
            test_type="bs",
            n_samples=resamples,
        )
        signatures, results = test()
    # sacrebleu renames the metrics, but keeps their order.
    return {
        metric: (_scores(systems, results[key], len(references)), str(signature))
        for metric, (key, signature) in zip(metrics, signatures.items(), strict=True)
    }


def _scores(
    systems: Mapping[str, Sequence[str]], results: Sequence[Any], sentences: int
) -> dict[str, SystemScore]:
    first = results[0].score
    scores = {}
    for name, result in zip(systems, results, strict=True):
        if sentences == 1:  # all resamples are equal
            scores[name] = SystemScore(float(result.score), math.nan, (math.nan, math.nan))
            continue
        interval = (float(result.mean - result.ci), float(result.mean + result.ci))
        p_value = 1.0 if result.p_value and result.score == first else result.p_value
        scores[name] = SystemScore(float(result.score), float(result.mean), interval, p_value)
    return scores


@contextlib.contextmanager
def _sacrebleu_seed(seed: int) -> Iterator[None]:
    """Context manager that sets sacrebleu's seed, which sacrebleu reads from the environment."""
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before


def _check(
    systems: Mapping[str, Sequence[str]], references: References, resamples: int, seed: int
) -> None:
    if not systems:
        raise ValueError("`systems` must have at least one system. Received: systems={}")
    for name, hypotheses in systems.items():
        check_texts(hypotheses, references, f"systems[{name!r}]")
    if resamples < 1 or seed < 1:
        raise ValueError(
            "`resamples` and `seed` must be at least 1. "
            f"Received: resamples={resamples}, seed={seed}"
        )
