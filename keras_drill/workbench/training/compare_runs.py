"""Evaluation of one or several runs, with a table and a report."""

import os
from collections.abc import Sequence

from keras_drill.workbench.report import RunSummary, describe_environment, write_report
from keras_drill.workbench.report.evaluated_text import describe_texts
from keras_drill.workbench.report.page.formatting import text_table
from keras_drill.workbench.report.results_section import names_of_texts
from keras_drill.workbench.tasks.adaptation import Adaptation
from keras_drill.workbench.training.comparability import compare_bases
from keras_drill.workbench.training.evaluation_figures import write_figures
from keras_drill.workbench.training.loaded_run import load_runs
from keras_drill.workbench.training.run_folder import RunFolder


def compare_runs(
    folders: Sequence[RunFolder],
    report: str | os.PathLike,
    data: str | Sequence[str] | None = None,
    title: str | None = None,
    checkpoint: int | str | None = None,
    figures: str | os.PathLike | None = None,
    adaptation: Adaptation | None = None,
) -> list[RunSummary]:
    """Evaluates the models of runs, prints a table, and writes a report.

    Args:
        folders: the runs. The others are compared with the first one.
        report: path of the HTML file.
        data: path or paths of the text, see `Task.read_whole`. By default each run is evaluated on
            its validation text and its test text.
        title: title of the report. By default the description of a single run, or
            "Models compared".
        checkpoint: the checkpoint to load from each run, see `LoadedRun.load`.
        figures: path of a JSON file for all metrics; `None` writes no file.
        adaptation: settings of dynamic evaluation and cache, for language models only.

    Returns:
        One summary per run, in the order of `folders`.
    """
    runs = load_runs(folders, checkpoint)
    texts, evaluated, summaries = {}, {}, []
    for run in runs:
        name = run.folder.name
        texts[name] = run.evaluation_texts(data)
        encoded = {text.name: text.encoded for text in texts[name]}
        if adaptation is None:
            evaluated[name] = run.task.evaluate(run.model, run.vocabulary, encoded)
        else:
            evaluated[name] = run.continuing_task.evaluate_adapted(
                run.model, run.vocabulary, encoded, adaptation
            )
        summaries.append(run.summarize(evaluated[name], texts[name]))
    compared, bases = compare_bases({run.folder.name: run for run in runs}, texts, evaluated)
    if title is None and len(runs) == 1:
        title = runs[0].config.description or None
    seeds = {run.folder.name: run.config.training.seed for run in runs}
    path = write_report(
        report,
        summaries,
        sections=runs[0].task.sections([run.vocabulary for run in runs], evaluated, bases),
        title=title,
        environment=describe_environment(seed=seeds),
        compared=compared,
    )
    print(comparison_table(summaries))
    print(f"\n{describe_texts({run.name: run.texts for run in summaries})}")
    for line in dict.fromkeys(line for run in summaries for line in run.signature_lines):
        print(line)
    for summary in summaries:
        for note in summary.notes:
            print(f"{summary.name}: {note}")
    for each in compared:
        if each.differences:
            print(f"\n{each}")
    print(f"report: {path}")
    if figures is not None:
        write_figures(figures, runs, list(evaluated.values()), summaries, checkpoint, compared)
        print(f"figures: {figures}")
    return summaries


def comparison_table(summaries: Sequence[RunSummary]) -> str:
    """Formats summaries of runs as a table for the terminal.

    Example:

    >>> print(comparison_table([RunSummary("a", "tied softmax", valid_perplexity=65.8)]))
    run  output layer  parameters  of which output  valid ppl  test ppl  s/epoch
    a    tied softmax           -                -      65.80         -        -
    """
    texts = names_of_texts(summaries)
    if set(texts) <= {"valid", "test"}:
        texts = ["valid", "test"]
    scores = list(dict.fromkeys(name for run in summaries for name in run.scores))
    rows = [
        (
            "run",
            "output layer",
            "parameters",
            "of which output",
            *(f"{name} ppl" for name in texts),
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
                *(_number(run.perplexities.get(name), ".2f") for name in texts),
                *(_number(run.scores.get(name), ".2f") for name in scores),
                _number(run.seconds_per_epoch, ".1f"),
            )
        )
    return text_table(rows, left=2)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
