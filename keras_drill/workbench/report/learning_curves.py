"""The report section on training: perplexity, learning rate, gradient norm by epoch."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.report.page.formatting import (
    MISSING,
    format_count,
    format_perplexity,
    format_significant,
)
from keras_drill.workbench.report.page.plot import (
    PAPER,
    inline_svg,
    keys,
    line_key,
    ring_key,
    run_keys,
    series_color,
    series_marker,
)
from keras_drill.workbench.report.run_summary import RunSummary

_NOT_COMPARABLE = (
    "The perplexities of these runs cannot be compared, because the runs do not predict the same "
    "words of the same text. Compare only curves of the same run."
)
# With more epochs, markers on every epoch would hide the curve.
_MOST_MARKED_EPOCHS = 40


def _format_tokens(value: float) -> str:
    # Epochs of older versions have no count.
    return format_count(int(value) if math.isfinite(value) else None)


class _Measure(NamedTuple):
    """A column of the history, plotted below the perplexity.

    Args:
        column: Name of the column in the history.
        name: Name for the reader.
        form: Function that formats the numbers.
        is_sum: Whether the values increase from 0.
    """

    column: str
    name: str
    form: Callable[[float], str]
    is_sum: bool = False


_MEASURES = (
    _Measure("learning_rate", "learning rate", format_significant),
    _Measure("gradient_norm", "gradient norm", format_significant),
    _Measure("tokens", "tokens seen", _format_tokens, is_sum=True),
)


def learning_curves_section(
    runs: Sequence[RunSummary], are_comparable: bool = True
) -> ElementTree.Element:
    """Builds plots of training by epoch, with a folded table of the numbers.

    The plots show the perplexity of all runs. They also show the learning rate, the gradient norm
    and the number of tokens seen if the history contains them.

    Args:
        runs: The runs.
        are_comparable: Whether the perplexities of different runs can be compared.
    """
    heading = element("h2", "Learning curves")
    finite = [value for run in runs for value in _finite(run.train_curve + run.valid_curve)]
    if not finite:
        return element("section", heading, element("p", "No epoch has a finite perplexity."))
    measures = [measure for measure in _MEASURES if _values(runs, measure.column)]
    return element(
        "section",
        heading,
        *([] if are_comparable else [element("p", _NOT_COMPARABLE)]),
        _perplexity_figure(runs, finite),
        *_broken_epochs(runs),
        *_averaging(runs),
        *([_measures_figure(runs, measures)] if measures else []),
        _numbers(runs, measures),
    )


def _perplexity_figure(runs: Sequence[RunSummary], finite: list[float]) -> ElementTree.Element:
    plot = inline_svg(
        lambda figure, narrow: _draw_perplexity(figure.subplots(), runs, finite),
        "curves",
        "Perplexity by epoch of "
        + ", ".join(run.name for run in runs if run.epochs)
        + ". The numbers are in the table below.",
    )
    styles: list[tuple[ElementTree.Element, ElementTree.Element | str]] = []
    if any(_finite(run.valid_curve) for run in runs):
        styles.append((line_key(), "validation"))
    if any(_finite(run.train_curve) for run in runs):
        styles.append((line_key(dashed=True), "training"))
    if any(_kept_point(run) for run in runs):
        styles.append((ring_key(), "best epoch, whose model is kept"))
    caption = "Perplexity by epoch, lower is better."
    if len(styles) > 1:
        caption += " Training perplexity is measured with dropout, while the weights change."
    return element("figure", _named_runs(runs), keys(*styles), plot, element("figcaption", caption))


def _draw_perplexity(axes: Axes, runs: Sequence[RunSummary], finite: list[float]) -> None:
    for index, run in enumerate(runs):
        color = series_color(index)
        train, valid = _plottable(run.train_curve), _plottable(run.valid_curve)
        axes.plot(
            range(1, len(train) + 1),
            train,
            color=color,
            linestyle=(0, (3, 2)),
            linewidth=1.1,
            alpha=0.75,
            marker="." if len(_finite(train)) == 1 else None,
        )
        _draw_marked(axes, index, valid)
        kept = _kept_point(run)
        if kept:
            axes.plot(
                *kept,
                color=color,
                marker="o",
                markersize=10,
                markerfacecolor="none",
                markeredgecolor=color,
                markeredgewidth=1.3,
            )
    axes.set_ylabel("perplexity")
    _scale(axes, runs, finite)


def _measures_figure(
    runs: Sequence[RunSummary], measures: Sequence[_Measure]
) -> ElementTree.Element:
    def draw(figure: Figure, narrow: bool) -> None:
        rows = figure.subplots(len(measures), 1, sharex=True, squeeze=False)[:, 0]
        for axes, measure in zip(rows, measures, strict=True):
            for index, run in enumerate(runs):
                _draw_marked(axes, index, _plottable(run.history.get(measure.column, ())))
            axes.set_ylabel(measure.name.replace(" ", "\n"))
            axes.locator_params(axis="y", nbins=3)
            positive = [value for value in _values(runs, measure.column) if value > 0]
            if measure.is_sum:
                axes.set_ylim(bottom=0)
            _scale(axes, runs, [] if measure.is_sum else positive, most=20)
            axes.label_outer()
        figure.align_ylabels()

    shown = ", ".join(measure.name for measure in measures)
    plot = inline_svg(draw, "measures", f"By epoch: {shown}. The numbers are in the table below.")
    caption = f"{shown[0].upper()}{shown[1:]} by epoch."
    return element("figure", _named_runs(runs), plot, element("figcaption", caption))


def _draw_marked(axes: Axes, index: int, values: Sequence[float]) -> None:
    axes.plot(
        range(1, len(values) + 1),
        values,
        color=series_color(index),
        linewidth=1.8,
        marker=series_marker(index) if len(values) <= _MOST_MARKED_EPOCHS else None,
        markersize=4.5,
        markeredgecolor=PAPER,
        markeredgewidth=0.6,
    )


def _scale(
    axes: Axes, runs: Sequence[RunSummary], positive: Sequence[float], most: float = 4
) -> None:
    """Sets the scales of the axes.

    The horizontal axis has whole epochs. The vertical axis is logarithmic for positive values that
    differ by more than a factor of `most`.
    """
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    epochs = max(run.epochs for run in runs)
    axes.set_xlim(1 - min(0.5, 0.04 * epochs), epochs * 1.04)
    if positive and max(positive) > most * min(positive):
        axes.set_yscale("log")
        within_two_decades = max(positive) < 100 * min(positive)
        axes.yaxis.set_major_locator(
            LogLocator(subs=(1, 2, 5) if within_two_decades else (1,), numticks=12)
        )
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def _tick(value: float) -> str:
    return f"{value:.0e}" if value >= 1e6 else f"{value:,.6g}"


def _named_runs(runs: Sequence[RunSummary]) -> ElementTree.Element:
    return run_keys((index, run.name) for index, run in enumerate(runs) if run.epochs)


def _kept_point(run: RunSummary) -> tuple[int, float] | None:
    """Returns the kept epoch and its perplexity, if both are known."""
    kept, curve = run.kept_epoch, run.valid_curve
    if kept is None or not 0 < kept <= len(curve) or not math.isfinite(curve[kept - 1]):
        return None
    return kept, curve[kept - 1]


def _values(runs: Sequence[RunSummary], column: str) -> list[float]:
    return [value for run in runs for value in _finite(run.history.get(column, ()))]


def _plottable(curve: Sequence[float]) -> list[float]:
    """Replaces infinite values, which would stretch the axis, by NaN, which leaves a gap."""
    return [value if math.isfinite(value) else math.nan for value in curve]


def _finite(curve: Sequence[float]) -> list[float]:
    return [value for value in curve if math.isfinite(value)]


def _broken_epochs(runs: Sequence[RunSummary]) -> list[ElementTree.Element]:
    """Makes a warning for each run that has epochs without a finite perplexity."""
    warnings = []
    for run in runs:
        broken = sorted(
            {
                epoch
                for curve in (run.train_curve, run.valid_curve)
                for epoch, value in enumerate(curve, 1)
                if not math.isfinite(value)
            }
        )
        if broken:
            epochs = f"epoch{'s' if len(broken) > 1 else ''} {', '.join(map(str, broken))}"
            warnings.append(
                element(
                    "p",
                    element("bdi", run.name),
                    f" has no finite perplexity at {epochs}.",
                    class_="warning",
                )
            )
    return warnings


def _averaging(runs: Sequence[RunSummary]) -> list[ElementTree.Element]:
    """Makes a sentence for each run that evaluates averaged weights."""
    return [
        element(
            "p",
            element("bdi", run.name),
            f" averages its weights from epoch {run.first_averaged_epoch} on; its validation "
            "perplexity is that of the averaged weights.",
        )
        for run in runs
        if run.first_averaged_epoch
    ]


def _numbers(runs: Sequence[RunSummary], measures: Sequence[_Measure]) -> ElementTree.Element:
    columns = [
        (run, name, values, form)
        for run in runs
        for name, values, form in (
            ("training", run.train_curve, format_perplexity),
            ("validation", run.valid_curve, format_perplexity),
            *((each.name, run.history.get(each.column, ()), each.form) for each in measures),
        )
        if len(values)
    ]
    header: list[ElementTree.Element | str] = [
        "epoch",
        *(
            element("span", element("bdi", run.name), element("br"), name)
            for run, name, _, _ in columns
        ),
    ]
    rows = [
        [
            str(epoch + 1),
            *(
                form(values[epoch]) if epoch < len(values) else MISSING
                for _, _, values, form in columns
            ),
        ]
        for epoch in range(max(run.epochs for run in runs))
    ]
    return element(
        "details",
        element("summary", "The numbers of the plots"),
        table("The numbers of the plots", header, rows),
    )
