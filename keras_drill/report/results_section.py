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
    columns = {
        "run and output layer": [_name(index, run) for index, run in enumerate(runs)],
        "valid perplexity": _perplexity_column([run.valid_perplexity for run in runs]),
        "test perplexity": _perplexity_column([run.test_perplexity for run in runs]),
        "epoch kept": [_kept_epoch(run) for run in runs],
        "parameters": [format_count(run.total_parameters) for run in runs],
        "of the output layer": [format_count(run.output_parameters) for run in runs],
        "time per epoch": [format_duration(run.seconds_per_epoch) for run in runs],
        "time ratio": [_time_ratio(run, first) for run in runs] if len(runs) > 1 else [MISSING],
    }
    present = {
        name: cells
        for name, cells in columns.items()
        if name.startswith("run") or any(_text(cell) != MISSING for cell in cells)
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
    """The outcome in one sentence, by test perplexity when there is one."""
    for kind, perplexities in (
        ("test", [run.test_perplexity for run in runs]),
        ("validation", [run.valid_perplexity for run in runs]),
    ):
        finite = [
            index
            for index, value in enumerate(perplexities)
            if value is not None and math.isfinite(value)
        ]
        if finite:
            return _outcome(runs, kind, perplexities, finite)
    return f"No perplexity was measured for {', '.join(run.name for run in runs)}."


def _outcome(
    runs: Sequence[RunSummary], kind: str, perplexities: Sequence[float | None], finite: list[int]
) -> str:
    best = min(finite, key=perplexities.__getitem__)
    shown = format_perplexity(perplexities[best])
    if len(finite) == 1:
        return f"{runs[best].name} reaches a {kind} perplexity of {shown}."
    sentence = f"Of {len(finite)} runs, {runs[best].name} has the lowest {kind} perplexity: {shown}"
    if best == 0 or 0 not in finite:
        return f"{sentence}."
    change = 100 * (1 - perplexities[best] / perplexities[0])
    reference = f"{runs[0].name} ({format_perplexity(perplexities[0])})"
    return f"{sentence}, {change:.1f} % below {reference}."


def _name(index: int, run: RunSummary) -> ElementTree.Element:
    name = element("span", element("bdi", run.name))
    if run.output_layer:
        name.append(element("small", run.output_layer, dir="auto"))
    return element("div", series_key(index), name, class_="run")


def _kept_epoch(run: RunSummary) -> str:
    if run.kept_epoch is None:
        return MISSING
    return f"{run.kept_epoch} of {run.epochs}" if run.epochs else str(run.kept_epoch)


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
