"""The first report section: a table of all runs, and a sentence on the best run."""

import math
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from keras_drill.workbench.report.comparability import Comparability, unranked
from keras_drill.workbench.report.page.elements import (
    best_in_bold,
    element,
    running_text,
    table,
    words,
)
from keras_drill.workbench.report.page.formatting import (
    MISSING,
    format_count,
    format_duration,
    format_perplexity,
)
from keras_drill.workbench.report.page.plot import run_name
from keras_drill.workbench.report.run_summary import RunSummary


def results_section(
    runs: Sequence[RunSummary], compared: Sequence[Comparability] = ()
) -> ElementTree.Element:
    """Builds the comparison table. Columns without values are omitted.

    Args:
        runs: The runs. The first one is the baseline of the comparison.
        compared: The metrics that can be compared, by text. For a text without an entry, the text,
            tokenizer and vocabulary are assumed to be equal in all runs.
    """
    first = runs[0]
    columns: dict[str, Sequence[ElementTree.Element | str]] = {
        "run and output layer": [
            run_name(index, run.name, run.output_layer) for index, run in enumerate(runs)
        ],
        **{
            f"{name} perplexity": _perplexity_column(
                [run.perplexities.get(name) for run in runs], unranked(compared, name) is None
            )
            for name in names_of_texts(runs)
        },
        **{
            name: _score_column(runs, name, compared)
            for name in dict.fromkeys(name for run in runs for name in run.scores)
        },
        "best epoch": [_kept_epoch(run) for run in runs],
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
        "The runs compared" if len(runs) > 1 else "The run",
        list(present),
        [list(row) for row in zip(*present.values(), strict=True)],
    )
    notes = []
    if "of the output layer" in present:
        notes.append(
            "The parameters of an output layer do not include the word embedding if the layer "
            "shares it with the input."
        )
    if "time ratio" in present:
        notes.append("The time ratio is the time per epoch divided by that of the first run.")
    if any(len(_signatures(runs, name)) > 1 for name in present):
        notes.append("Scores that were computed with different settings are not compared.")
    return element(
        "section",
        element("h2", "Results"),
        shown,
        *([element("p", " ".join(notes), class_="note")] if notes else []),
        *_cut_off(runs),
        *_notes(runs),
        class_="results",
    )


def _cut_off(runs: Sequence[RunSummary]) -> list[ElementTree.Element]:
    """Makes a note with the runs that ended at the maximum number of epochs."""
    names = [run.name for run in runs if run.is_cut_off]
    if not names:
        return []
    sentence = ": the best epoch may be later, because training ended at the maximum of epochs."
    return [element("p", words(names, ", "), sentence, class_="note")]


def _notes(runs: Sequence[RunSummary]) -> list[ElementTree.Element]:
    """Makes notes on how the metrics of runs were obtained."""
    return [
        element("p", element("bdi", run.name), f": {'; '.join(run.notes)}.", class_="note")
        for run in runs
        if run.notes
    ]


def summarize(
    runs: Sequence[RunSummary], compared: Sequence[Comparability] = ()
) -> list[ElementTree.Element | str]:
    """Summarizes the results in one sentence.

    The sentence is about the last text with perplexities, the test text if there is one.

    Args:
        runs: The runs.
        compared: See `results_section`.
    """
    for name in reversed(names_of_texts(runs)):
        finite = {
            index: run.perplexities[name]
            for index, run in enumerate(runs)
            if math.isfinite(run.perplexities.get(name, math.nan))
        }
        reason = unranked(compared, name)
        if len(finite) > 1 and reason is not None:
            return list(running_text(reason.reason))
        if finite:
            return _outcome(runs, "validation" if name == "valid" else name, finite)
    return ["No perplexity was measured for ", words([run.name for run in runs], ", "), "."]


def names_of_texts(runs: Sequence[RunSummary]) -> list[str]:
    """Returns the names of the texts with perplexities: "valid", "test", then others."""
    names = dict.fromkeys(name for run in runs for name in run.perplexities)
    return sorted(names, key=lambda name: {"valid": 0, "test": 1}.get(name, 2))


def _outcome(
    runs: Sequence[RunSummary], kind: str, perplexities: Mapping[int, float]
) -> list[ElementTree.Element | str]:
    best = min(perplexities, key=perplexities.__getitem__)
    winner = element("bdi", runs[best].name)
    shown = format_perplexity(perplexities[best])
    if len(perplexities) == 1:
        return [winner, f" reaches a {kind} perplexity of {shown}."]
    sentence: list[ElementTree.Element | str] = [
        f"Of {len(perplexities)} runs, ",
        winner,
        f" has the lowest {kind} perplexity: {shown}",
    ]
    if best == 0 or 0 not in perplexities:
        return [*sentence, "."]
    change = 100 * (1 - perplexities[best] / perplexities[0])
    reference = format_perplexity(perplexities[0])
    return [
        *sentence,
        f", {change:.1f} % below ",
        element("bdi", runs[0].name),
        f" ({reference}).",
    ]


def _kept_epoch(run: RunSummary) -> str:
    if run.kept_epoch is None:
        return MISSING
    return f"{run.kept_epoch} of {run.epochs}" if run.epochs else str(run.kept_epoch)


def _score(run: RunSummary, name: str) -> str:
    return MISSING if name not in run.scores else f"{run.scores[name]:.2f}"


def _perplexity_column(
    values: Sequence[float | None], are_comparable: bool
) -> list[ElementTree.Element | str]:
    cells = [format_perplexity(value) for value in values]
    return best_in_bold(values, cells, min) if are_comparable else list(cells)


def _score_column(
    runs: Sequence[RunSummary], name: str, compared: Sequence[Comparability]
) -> list[ElementTree.Element | str]:
    """Makes a column of scores, with the best one in bold if all can be compared."""
    cells = [_score(run, name) for run in runs]
    text = name.rpartition(" ")[0]
    of_others = any(each.name == text and not each.is_same_text for each in compared)
    if of_others or len(_signatures(runs, name)) > 1:
        return list(cells)
    return best_in_bold([run.scores.get(name) for run in runs], cells, max)


def _signatures(runs: Sequence[RunSummary], name: str) -> set[str | None]:
    """Returns the different signatures of a score among the runs."""
    metric = name.rpartition(" ")[2]
    return {run.signatures.get(metric) for run in runs if name in run.scores}


def _time_ratio(run: RunSummary, first: RunSummary) -> str:
    if not run.seconds_per_epoch or not first.seconds_per_epoch:
        return MISSING
    return f"{run.seconds_per_epoch / first.seconds_per_epoch:.2f}×"


def _text(cell: ElementTree.Element | str) -> str:
    return cell if isinstance(cell, str) else "".join(cell.itertext())
