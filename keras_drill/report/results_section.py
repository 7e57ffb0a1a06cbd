"""The report's first section: every run in one table, and the outcome in one sentence."""

import math
from collections.abc import Sequence
from xml.etree import ElementTree

from keras_drill.report.elements import element, table
from keras_drill.report.formatting import (
    MISSING,
    format_count,
    format_duration,
    format_perplexity,
)
from keras_drill.report.palette import series_key
from keras_drill.report.run_summary import RunSummary


def results_section(runs: Sequence[RunSummary]) -> ElementTree.Element:
    """The comparison table; a column that no run has a value for is left out."""
    first = runs[0]
    valid_perplexities = _perplexity_column([run.valid_perplexity for run in runs])
    test_perplexities = _perplexity_column([run.test_perplexity for run in runs])
    columns = {
        "run": [
            element("span", series_key(index), element("bdi", run.name), class_="run")
            for index, run in enumerate(runs)
        ],
        "output layer": [element("bdi", run.output_layer or MISSING) for run in runs],
        "parameters": [format_count(run.total_parameters) for run in runs],
        "of the output layer": [format_count(run.output_parameters) for run in runs],
        "epoch kept": [
            MISSING
            if run.kept_epoch is None
            else f"{run.kept_epoch} of {run.epochs}"
            if run.epochs
            else str(run.kept_epoch)
            for run in runs
        ],
        "valid perplexity": valid_perplexities,
        "test perplexity": test_perplexities,
        "time per epoch": [format_duration(run.seconds_per_epoch) for run in runs],
        "time ratio": [_time_ratio(run, first) for run in runs] if len(runs) > 1 else [MISSING],
    }
    present = {
        name: cells
        for name, cells in columns.items()
        if name == "run" or any(_text(cell) != MISSING for cell in cells)
    }
    shown = table(
        "The runs compared",
        list(present),
        [list(row) for row in zip(*present.values(), strict=True)],
    )
    notes = []
    if "of the output layer" in present:
        notes.append("Parameters of the output layer leave out an embedding that it shares.")
    if "time ratio" in present:
        notes.append("The time ratio is to the first run.")
    return element(
        "section",
        element("h2", "Results"),
        shown,
        *([element("p", " ".join(notes), class_="note")] if notes else []),
        class_="results",
    )


def summarize(runs: Sequence[RunSummary]) -> str:
    """The outcome in one sentence, by test perplexity when every run has one."""
    for kind in ("test", "validation"):
        perplexities = [
            run.test_perplexity if kind == "test" else run.valid_perplexity for run in runs
        ]
        if all(value is not None and math.isfinite(value) for value in perplexities):
            break
    else:
        names = ", ".join(run.name for run in runs)
        return f"{len(runs)} run{'s' if len(runs) > 1 else ''}: {names}."
    best = min(range(len(runs)), key=perplexities.__getitem__)
    shown = format_perplexity(perplexities[best])
    if len(runs) == 1:
        return f"{runs[0].name} reaches a {kind} perplexity of {shown}."
    if best == 0:
        return f"Of {len(runs)} runs, {runs[0].name} has the lowest {kind} perplexity: {shown}."
    change = 100 * (1 - perplexities[best] / perplexities[0])
    return (
        f"Of {len(runs)} runs, {runs[best].name} has the lowest {kind} perplexity: {shown}, "
        f"{change:.1f} % below {runs[0].name} ({format_perplexity(perplexities[0])})."
    )


def _perplexity_column(
    values: Sequence[float | None],
) -> list[ElementTree.Element | str]:
    """The values, the smallest of several in bold."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    cells = [format_perplexity(value) for value in values]
    if len(finite) < 2:
        return cells
    return [
        element("strong", cell) if value == min(finite) else cell
        for value, cell in zip(values, cells, strict=True)
    ]


def _time_ratio(run: RunSummary, first: RunSummary) -> str:
    if not run.seconds_per_epoch or not first.seconds_per_epoch:
        return MISSING
    return f"{run.seconds_per_epoch / first.seconds_per_epoch:.2f}×"


def _text(cell: ElementTree.Element | str) -> str:
    return cell if isinstance(cell, str) else "".join(cell.itertext())
