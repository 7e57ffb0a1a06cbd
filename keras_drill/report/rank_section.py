"""The section on the rank of the log-probabilities."""

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from keras_drill.report.elements import element, table
from keras_drill.report.formatting import format_count
from keras_drill.report.inline_svg import inline_svg
from keras_drill.report.palette import MUTED, PAPER, series_color, series_key, series_marker
from keras_drill.report.run_analysis import RunAnalysis

_LOWEST = 1e-17  # below float64's rounding; exact zeros are drawn here


def rank_section(runs: Sequence[RunAnalysis]) -> ElementTree.Element:
    """Singular values of the log-probabilities of all runs, and their numerical ranks."""
    keys = [
        element("li", series_key(index), element("bdi", run.name)) for index, run in enumerate(runs)
    ]
    plot = inline_svg(
        lambda figure, narrow: _draw(figure, runs),
        "rank",
        "Singular values of the matrix of log-probabilities of "
        + ", ".join(run.name for run in runs)
        + ". The ranks are in the table below.",
    )
    tolerance = runs[0].rank.tolerance
    caption = (
        "Singular values of the matrix of log-probabilities of all words at "
        f"{format_count(runs[0].rank.tokens)} places of the text, computed in float64, relative to "
        f"the greatest. Those above the dashed line, {tolerance:.0e}, count; a marker shows the "
        "rank. A softmax of inner products cannot have more than d + 2: the width of its labels, "
        "one for the bias, one for the normaliser."
    )
    rows = [
        [
            _name(index, run),
            run.shown_rank,
            run.shown_bound,
            *run.shown_edge,
            format_count(run.rank.tokens),
            format_count(run.rank.words),
        ]
        for index, run in enumerate(runs)
    ]
    header = [
        "run and output layer",
        "rank",
        "upper bound",
        "last value counted",
        "first not counted",
        "tokens",
        "words",
    ]
    notes = []
    if any(run.rank.is_full for run in runs):
        notes.append(
            "A rank with ≥ is the greatest that so many tokens can show: with more tokens, and as "
            "many words, it may be greater."
        )
    return element(
        "section",
        element("h2", "Rank of the log-probabilities"),
        element(
            "figure", element("ul", *keys, class_="keys"), plot, element("figcaption", caption)
        ),
        table("Numerical rank of the log-probabilities", header, rows),
        *[element("p", note, class_="note") for note in notes],
        class_="results",
    )


def _name(index: int, run: RunAnalysis) -> ElementTree.Element:
    name = element("span", element("bdi", run.name))
    name.append(element("small", run.output_layer, dir="auto"))
    return element("div", series_key(index), name, class_="run")


def _draw(figure: Figure, runs: Sequence[RunAnalysis]) -> None:
    axes = figure.subplots()
    axes.axhline(runs[0].rank.tolerance, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    for index, run in enumerate(runs):
        values = run.rank.singular_values / run.rank.singular_values[0]
        values = np.maximum(values, _LOWEST)
        places = np.arange(1, len(values) + 1)
        color = series_color(index)
        # Models of one width have nearly the same values: thinner above thicker, all can be seen.
        axes.plot(places, values, color=color, linewidth=max(1.2, 4.2 - 1.5 * index))
        axes.plot(
            run.rank.rank,
            values[run.rank.rank - 1],
            color=color,
            marker=series_marker(index),
            markersize=max(5, 10 - 2.5 * index),
            markeredgecolor=PAPER,
            markeredgewidth=0.8,
            clip_on=False,
        )
    axes.set_yscale("log")
    axes.set_ylim(_LOWEST / 3, 3)
    axes.set_xlim(0, max(len(run.rank.singular_values) for run in runs) * 1.02)
    axes.yaxis.set_major_locator(LogLocator(numticks=7))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    axes.set_xlabel("singular value number")
    axes.set_ylabel("relative to the greatest")
