"""Several runs judged on the same text."""

import os
from collections.abc import Sequence

from keras_drill.report import RunSummary, describe_environment, write_report
from keras_drill.report.page.formatting import text_table
from keras_drill.training.loaded_run import load_runs
from keras_drill.training.run_folder import RunFolder


def compare_runs(
    folders: Sequence[RunFolder],
    report: str | os.PathLike,
    data: str | None = None,
    title: str = "Models compared",
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
    runs = load_runs(folders, checkpoint)
    judged = {
        run.folder.name: run.task.judge(run.model, run.words, run.judged_texts(data))
        for run in runs
    }
    summaries = [run.summarize(judged[run.folder.name]) for run in runs]
    seeds = {run.folder.name: run.config.training.seed for run in runs}
    path = write_report(
        report,
        summaries,
        sections=runs[0].task.sections([run.words for run in runs], judged),
        title=title,
        environment=describe_environment(seed=seeds),
    )
    print(comparison_table(summaries))
    print(f"report: {path}")
    return summaries


def comparison_table(summaries: Sequence[RunSummary]) -> str:
    """A table of runs.

    Example:

    >>> print(comparison_table([RunSummary("a", "tied softmax", valid_perplexity=65.8)]))
    run  output layer  parameters  of which output  valid ppl  test ppl  s/epoch
    a    tied softmax           -                -      65.80         -        -
    """
    scores = list(dict.fromkeys(name for run in summaries for name in run.scores))
    rows = [
        (
            "run",
            "output layer",
            "parameters",
            "of which output",
            "valid ppl",
            "test ppl",
            *scores,
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
                *(_number(run.scores.get(name), ".2f") for name in scores),
                _number(run.seconds_per_epoch, ".1f"),
            )
        )
    return text_table(rows, left=2)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
