"""Several runs judged on the same text."""

import os
from collections.abc import Sequence

import numpy as np

from keras_drill.analysis import compare_by_frequency
from keras_drill.analysis.compare_by_frequency import FrequencyComparison
from keras_drill.report import RunSummary, describe_environment, write_report
from keras_drill.report.page.formatting import text_table
from keras_drill.training.errors import RunError
from keras_drill.training.loaded_run import LoadedRun, judged_splits
from keras_drill.training.run_folder import RunFolder


def compare_runs(
    folders: Sequence[RunFolder],
    report: str | os.PathLike,
    data: str | os.PathLike | None = None,
    title: str = "Language models compared",
    checkpoint: int | str | None = None,
) -> list[RunSummary]:
    """Judges the models of runs, prints a table, and writes a report.

    Args:
        folders: the runs, the one that the others are compared with first.
        report: the HTML file.
        data: the text; by default that of each run.
        title: title of the report.
        checkpoint: as of `LoadedRun.load`, for all of them.
    """
    runs = [LoadedRun.load(folder, checkpoint) for folder in folders]
    names = [run.folder.name for run in runs]
    if len(set(names)) < len(names):
        raise RunError(f"the folders of the runs must have different names, not {names}")
    summaries, judged = [], []
    for run in runs:
        splits = judged_splits(run, data)
        perplexities = {split: run.perplexity(ids) for split, ids in splits.items()}
        summaries.append(run.summarize(perplexities))
        judged.append(splits["test" if "test" in splits else "valid"])
    comparison = _by_frequency(runs, judged) if len(runs) > 1 else None
    seeds = {run.folder.name: run.config.training.seed for run in runs}
    path = write_report(
        report,
        summaries,
        comparison=comparison,
        title=title,
        environment=describe_environment(seed=seeds),
    )
    print(comparison_table(summaries))
    print(f"report: {path}")
    return summaries


def _by_frequency(
    runs: Sequence[LoadedRun], judged: Sequence[np.ndarray]
) -> FrequencyComparison | None:
    """The second run against the first; `None` where they have not the same words."""
    first, second = runs[:2]
    counts = first.vocabulary.counts
    if first.vocabulary.tokens != second.vocabulary.tokens or counts is None:
        return None
    targets, log_probs = first.log_probs(judged[0])
    other_targets, other_log_probs = second.log_probs(judged[1])
    if not np.array_equal(targets, other_targets):
        return None
    return compare_by_frequency(
        targets,
        log_probs,
        other_log_probs,
        np.array(counts),
        names=(first.folder.name, second.folder.name),
    )


def comparison_table(summaries: Sequence[RunSummary]) -> str:
    """A table of runs.

    Example:

    >>> print(comparison_table([RunSummary("a", "tied softmax", valid_perplexity=65.8)]))
    run  output layer  parameters  of which output  valid ppl  test ppl  s/epoch
    a    tied softmax           -                -      65.80         -        -
    """
    rows = [
        (
            "run",
            "output layer",
            "parameters",
            "of which output",
            "valid ppl",
            "test ppl",
            "s/epoch",
        )
    ]
    for run in summaries:
        rows.append(
            (
                run.name,
                run.output_layer,
                _number(run.total_parameters, ","),
                _number(run.output_parameters, ","),
                _number(run.valid_perplexity, ".2f"),
                _number(run.test_perplexity, ".2f"),
                _number(run.seconds_per_epoch, ".1f"),
            )
        )
    return text_table(rows, left=2)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
