"""Analysis of the output layers of several runs: rank, argmaxable words, word frequency."""

import importlib.util
import math
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_drill.output_layer import OutputLayer
from keras_drill.workbench.analysis import (
    FrequencyComparison,
    collect_hidden,
    compare_by_frequency,
    measure_argmaxable_words,
    measure_rank,
)
from keras_drill.workbench.analysis.collect import in_text_order
from keras_drill.workbench.analysis.rank import RELATIVE_TOLERANCE
from keras_drill.workbench.report import RunAnalysis, describe_environment, write_analysis
from keras_drill.workbench.report.comparability import PerplexityBasis, frequency_obstacle
from keras_drill.workbench.report.evaluated_text import describe_texts
from keras_drill.workbench.report.page.formatting import text_table
from keras_drill.workbench.training.comparability import perplexity_basis
from keras_drill.workbench.training.loaded_run import load_runs
from keras_drill.workbench.training.run_folder import RunFolder

_BLOCK = 1024


class _Evaluated(NamedTuple):
    """Log-probabilities of a text's targets under one run.

    Attributes:
        basis: The text, tokenizer and vocabulary of the log-probabilities.
        targets: Targets in the order of the text, `[N]`.
        log_probs: Their log-probabilities, `[N]`.
    """

    basis: PerplexityBasis
    targets: np.ndarray
    log_probs: np.ndarray


def analyze_runs(
    folders: Sequence[RunFolder],
    report: str | os.PathLike,
    data: str | Sequence[str] | None = None,
    tokens: int = 2048,
    tolerance: float = RELATIVE_TOLERANCE,
    bound: float = 100.0,
    max_programs: int | None = None,
    checkpoint: int | str | None = None,
) -> list[RunAnalysis]:
    """Analyzes the output layers of the best models of runs, prints tables, and writes a page.

    Args:
        folders: The runs. The others are compared with the first one.
        report: Path of the HTML file.
        data: Path of the text, see `Task.read_whole`. By default the last evaluation text of each
            run, which is the test text if there is one.
        tokens: Number of tokens to measure the rank on, spread evenly over the text.
        tolerance: Relative tolerance of the rank.
        bound: Limit of the absolute value of a hidden state's components in the search for words
            that can be the most probable.
        max_programs: Maximum number of linear programs to solve for a run.
        checkpoint: The checkpoint to load from each run, see `LoadedRun.load`.

    Returns:
        One analysis per run, in the order of `folders`.
    """
    analyses, evaluated, seeds = [], {}, {}
    for run in load_runs(folders, checkpoint):
        text = run.evaluation_texts(data)[-1]
        batches = run.task.evaluation_batches(run.vocabulary, text.encoded)
        _, targets, hidden = collect_hidden(run.model, batches.dataset())
        head = run.model.head
        log_probs = _log_probs(head, hidden, targets)
        places = run.task.target_places(run.vocabulary, text.encoded)
        analyses.append(
            RunAnalysis(
                name=run.folder.name,
                output_layer=run.config.output_layer,
                perplexity=math.exp(-log_probs.mean(dtype="float64")),
                rank=measure_rank(head, hidden[_spread(places, tokens)], tolerance),
                argmaxable=measure_argmaxable_words(
                    head, hidden, bound=bound, max_programs=max_programs
                ),
                words=run.vocabulary.tokens,
                counts=run.vocabulary.counts,
                text=text.described,
            )
        )
        evaluated[run.folder.name] = _Evaluated(
            perplexity_basis(run, text),
            in_text_order(targets, places),
            in_text_order(log_probs, places),
        )
        seeds[run.folder.name] = run.config.training.seed
    comparisons, not_compared = _comparisons(analyses[0].counts, evaluated)
    path = write_analysis(
        report, analyses, comparisons, describe_environment(seed=seeds), not_compared
    )
    print(_tables(analyses, comparisons))
    for name, reason in not_compared.items():
        print(f"\n{name} is not compared by word frequency: {reason}")
    if importlib.util.find_spec("scipy") is None:
        print("\nWith SciPy fewer words are undecided: pip install 'keras-drill[analysis]'")
    print(f"\nreport: {path}")
    return analyses


def _spread(places: np.ndarray, tokens: int) -> np.ndarray:
    """Chooses targets that are spread evenly over the text.

    The choice does not depend on the batch size.

    Args:
        places: Position in the text of each target, in the order of the batches, `[N]`.
        tokens: Maximum number of targets to choose.

    Returns:
        Indices of the chosen targets in the order of the batches.
    """
    last = len(places) - 1
    chosen = np.unique(np.linspace(0, last, min(tokens, len(places))).astype(int))
    return np.argsort(places)[chosen]


def _log_probs(head: OutputLayer, hidden: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns the log-probability of each target, `[N]`, computed block by block."""
    blocks = (slice(start, start + _BLOCK) for start in range(0, len(hidden), _BLOCK))
    return np.concatenate([np.asarray(head.log_prob(hidden[b], targets[b])) for b in blocks])


def _comparisons(
    counts: Sequence[int] | None, evaluated: Mapping[str, _Evaluated]
) -> tuple[list[FrequencyComparison], dict[str, str]]:
    """Compares each run with the first one, by word frequency.

    Returns:
        The comparisons, and the reasons why other runs cannot be compared, by name of the run.
    """
    comparisons, not_compared = [], {}
    (first, of_first), *others = evaluated.items()
    for name, other in others:
        reason = frequency_obstacle(of_first.basis, other.basis, (first, name), counts)
        if reason is None:
            comparisons.append(
                compare_by_frequency(
                    of_first.targets,
                    of_first.log_probs,
                    other.log_probs,
                    np.array(counts),
                    names=(first, name),
                )
            )
        else:
            not_compared[name] = reason
    return comparisons, not_compared


def _tables(analyses: Sequence[RunAnalysis], comparisons: Sequence[FrequencyComparison]) -> str:
    ranks = [("run", "output layer", "perplexity", "rank", "at most", "last counted", "first not")]
    words: list[tuple[str, ...]] = [
        ("run", "words", "in the text", "elsewhere", "never", "undecided")
    ]
    never = []
    for run in analyses:
        ranks.append(
            (
                run.name,
                run.output_layer,
                f"{run.perplexity:.2f}",
                run.shown_rank,
                run.shown_bound,
                *run.shown_edge,
            )
        )
        words.append((run.name, *map(str, (len(run.words), *run.argmaxable.counts().values()))))
        if run.never_chosen:
            more = " ..." if len(run.never_chosen) > 10 else ""
            never.append(f"{run.name} never chooses {' '.join(run.never_chosen[:10])}{more}")
    texts = {run.name: [run.text] for run in analyses if run.text is not None}
    tables = [
        describe_texts(texts),
        f"Rank of the log-probabilities at {analyses[0].rank.tokens} tokens\n"
        + text_table(ranks, left=2),
        "Words that can be the most probable\n" + "\n".join([text_table(words), *never]),
    ]
    for comparison in comparisons:
        rows = [("training count", "tokens", comparison.name_a, comparison.name_b, "difference")]
        for label, bin in (
            *((bin.label, bin) for bin in comparison.bins),
            ("all", comparison.overall),
        ):
            difference = f"{_nats(bin.difference, '+')}{'*' if bin.is_significant else ' '}"
            nats = (_nats(bin.cross_entropy_a), _nats(bin.cross_entropy_b), difference)
            rows.append((label, str(bin.tokens), *nats))
        tables.append(
            "Nats per token by word frequency (* the interval of the difference excludes 0)\n"
            + text_table(rows)
        )
    return "\n\n".join(tables)


def _nats(value: float, sign: str = "") -> str:
    return "-" if math.isnan(value) else f"{value:{sign}.3f}"
