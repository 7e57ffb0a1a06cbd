"""The report's section on training: perplexity by epoch."""

import math
from collections.abc import Sequence
from xml.etree import ElementTree

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from keras_drill.report.elements import element, table
from keras_drill.report.formatting import MISSING, format_perplexity
from keras_drill.report.inline_svg import inline_svg
from keras_drill.report.palette import PAPER, series_color, series_key, series_marker
from keras_drill.report.run_summary import RunSummary

# Markers on every epoch crowd the curve from here on.
_MOST_MARKED_EPOCHS = 40


def learning_curves_section(runs: Sequence[RunSummary]) -> ElementTree.Element:
    """Training and validation perplexity of all runs by epoch, with the numbers folded below."""
    heading = element("h2", "Learning curves")
    finite = [value for run in runs for value in _finite(run.train_curve + run.valid_curve)]
    if not finite:
        return element(
            "section", heading, element("p", "No epoch was completed with a finite perplexity.")
        )
    keys = [
        element("li", series_key(index), element("bdi", run.name))
        for index, run in enumerate(runs)
        if run.epochs
    ]
    plot = inline_svg(
        lambda figure, narrow: _draw(figure, runs, finite),
        "curves",
        "Perplexity by epoch of "
        + ", ".join(run.name for run in runs if run.epochs)
        + ". The numbers are in the table below.",
    )
    caption = (
        "Perplexity by epoch, lower is better: validation solid, training dashed (measured while "
        "the weights change and with dropout on). A ring marks the epoch that was kept."
    )
    figure = element(
        "figure", element("ul", *keys, class_="keys"), plot, element("figcaption", caption)
    )
    return element("section", heading, figure, *_broken_epochs(runs), _numbers(runs))


def _draw(figure: Figure, runs: Sequence[RunSummary], finite: Sequence[float]) -> None:
    axes = figure.subplots()
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
        axes.plot(
            range(1, len(valid) + 1),
            valid,
            color=color,
            linewidth=1.8,
            marker=series_marker(index) if len(valid) <= _MOST_MARKED_EPOCHS else None,
            markersize=4.5,
            markeredgecolor=PAPER,
            markeredgewidth=0.6,
        )
        if run.kept_epoch is not None and 0 < run.kept_epoch <= len(valid):
            axes.plot(
                run.kept_epoch,
                valid[run.kept_epoch - 1],
                color=color,
                marker="o",
                markersize=10,
                markerfacecolor="none",
                markeredgecolor=color,
                markeredgewidth=1.3,
            )
    axes.set_xlabel("epoch")
    axes.set_ylabel("perplexity")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    epochs = max(run.epochs for run in runs)
    axes.set_xlim(1 - min(0.5, 0.04 * epochs), epochs * 1.04)
    if max(finite) > 4 * min(finite):
        axes.set_yscale("log")
        within_two_decades = max(finite) < 100 * min(finite)
        axes.yaxis.set_major_locator(
            LogLocator(subs=(1, 2, 5) if within_two_decades else (1,), numticks=12)
        )
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def _tick(value: float) -> str:
    return f"{value:.0e}" if value >= 1e6 else f"{value:,.6g}"


def _plottable(curve: Sequence[float]) -> list[float]:
    """Infinity would stretch the axis: it is drawn as a gap, as NaN is."""
    return [value if math.isfinite(value) else math.nan for value in curve]


def _finite(curve: Sequence[float]) -> list[float]:
    return [value for value in curve if math.isfinite(value)]


def _broken_epochs(runs: Sequence[RunSummary]) -> list[ElementTree.Element]:
    """One warning for each run with epochs that have no finite perplexity."""
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


def _numbers(runs: Sequence[RunSummary]) -> ElementTree.Element:
    curves = [
        (run, name, curve)
        for run in runs
        for name, curve in (("training", run.train_curve), ("validation", run.valid_curve))
        if curve
    ]
    header = [
        "epoch",
        *(
            element("span", element("bdi", run.name), element("br"), name)
            for run, name, _ in curves
        ),
    ]
    rows = [
        [
            str(epoch + 1),
            *(
                format_perplexity(curve[epoch]) if epoch < len(curve) else MISSING
                for _, _, curve in curves
            ),
        ]
        for epoch in range(max(run.epochs for run in runs))
    ]
    return element(
        "details",
        element("summary", "The numbers behind the curves"),
        table("Perplexity by epoch", header, rows),
    )
