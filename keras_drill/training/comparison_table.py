"""Runs side by side, for the terminal."""

from collections.abc import Sequence

from keras_drill.report import RunSummary
from keras_drill.report.text_table import text_table


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
