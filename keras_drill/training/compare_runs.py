"""Several runs judged on the same text."""

import os
from collections.abc import Sequence

import numpy as np

from keras_drill.analysis import compare_by_frequency
from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.report import RunSummary, describe_environment, write_report
from keras_drill.training.comparison_table import comparison_table
from keras_drill.training.judged_splits import judged_splits
from keras_drill.training.loaded_run import LoadedRun
from keras_drill.training.run_error import RunError
from keras_drill.training.run_folder import RunFolder


def compare_runs(
    folders: Sequence[RunFolder],
    report: str | os.PathLike,
    data: str | os.PathLike | None = None,
    title: str = "Language models compared",
) -> list[RunSummary]:
    """Judges the best models of runs, prints a table, and writes a report.

    Args:
        folders: the runs, the one that the others are compared with first.
        report: the HTML file.
        data: the text; by default that of each run.
        title: title of the report.
    """
    runs = [LoadedRun.load(folder) for folder in folders]
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
    path = write_report(
        report, summaries, comparison=comparison, title=title, environment=describe_environment()
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
