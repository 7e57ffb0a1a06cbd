"""The report section on word frequency: which words one model predicts better."""

import math
from xml.etree import ElementTree

from matplotlib.figure import Figure

from keras_drill.workbench.analysis.compare_by_frequency import FrequencyBin, FrequencyComparison
from keras_drill.workbench.report.page.bins import draw_shares
from keras_drill.workbench.report.page.elements import element, running_text, table
from keras_drill.workbench.report.page.formatting import format_count, format_nats
from keras_drill.workbench.report.page.plot import (
    INK,
    MUTED,
    PAPER,
    inline_svg,
    keys,
    point_key,
    series_color,
    series_marker,
)


def frequency_section(
    comparison: FrequencyComparison, index_a: int, index_b: int, prefix: str = "frequency"
) -> ElementTree.Element:
    """Builds a plot and a table of the difference in cross-entropy of two models by word frequency.

    Args:
        comparison: The comparison of models A and B.
        index_a: Position of model A's colour in the palette.
        index_b: Position of model B's colour in the palette.
        prefix: Prefix of the ids in the plot, unique on the page.
    """
    coverage = f"{100 * comparison.confidence:g} %"
    plot = inline_svg(
        lambda figure, narrow: _draw(figure, comparison, index_a, index_b, narrow),
        prefix,
        f"Cross-entropy of {comparison.name_a} minus that of {comparison.name_b} by training-set "
        "frequency of the word. The numbers are in the table below.",
    )
    caption = element(
        "figcaption",
        "Cross-entropy of ",
        element("bdi", comparison.name_a),
        " minus that of ",
        element("bdi", comparison.name_b),
        ", by training-set frequency of the word. Below: share of the tokens in each bin. Error "
        f"bars are {coverage} paired bootstrap intervals over blocks of {comparison.block_size} "
        "tokens. They do not include the variation between training runs with different seeds.",
    )
    header: list[ElementTree.Element | str] = [
        "training count",
        "tokens",
        "words",
        element("bdi", comparison.name_a),
        element("bdi", comparison.name_b),
        "difference",
        "std. error",
        f"{coverage} interval",
    ]
    return element(
        "section",
        _heading(comparison.name_a, comparison.name_b),
        element("figure", _keys(comparison, index_a, index_b), plot, caption),
        table(
            "Mean cross-entropy in nats per token by training-set frequency",
            header,
            [_row(bin.label, bin) for bin in comparison.bins],
            footer=_row("all", comparison.overall),
        ),
        element(
            "p",
            "Mean cross-entropies in nats per token. A difference is bold if its interval excludes "
            "zero.",
            class_="note",
        ),
    )


def no_frequency_section(name_a: str, name_b: str, reason: str) -> ElementTree.Element:
    """Builds a section that explains why two models are not compared by word frequency.

    Args:
        name_a: Name of model A.
        name_b: Name of model B.
        reason: The reason, as a clause.
    """
    why = element("p", *running_text(f"The runs cannot be compared by word frequency: {reason}."))
    return element("section", _heading(name_a, name_b), why)


def _heading(name_a: str, name_b: str) -> ElementTree.Element:
    parts = ("By word frequency: ", element("bdi", name_b), " against ", element("bdi", name_a))
    return element("h2", *parts)


def _keys(comparison: FrequencyComparison, index_a: int, index_b: int) -> ElementTree.Element:
    """Builds the legend of the points in the plot."""

    def better(name: str) -> ElementTree.Element:
        return element("span", element("bdi", name), " better")

    drawn = _drawn(comparison)
    clear = [bin.difference for bin in drawn if bin.is_significant]
    named: list[tuple[ElementTree.Element, ElementTree.Element | str]] = []
    if any(difference > 0 for difference in clear):
        named.append((point_key(index_b), better(comparison.name_b)))
    if any(difference < 0 for difference in clear):
        named.append((point_key(index_a), better(comparison.name_a)))
    if any(math.isfinite(bin.difference) and not bin.is_significant for bin in drawn):
        named.append((point_key(None), "no clear difference"))
    return keys(*named)


def _drawn(comparison: FrequencyComparison) -> list[FrequencyBin]:
    """Returns the bins that have tokens, which the plot shows."""
    return [bin for bin in comparison.bins if bin.tokens]


def _row(label: str, bin: FrequencyBin) -> list[ElementTree.Element | str]:
    low, high = (format_nats(end, signed=True) for end in bin.interval)
    difference = format_nats(bin.difference, signed=True)
    return [
        label,
        format_count(bin.tokens),
        format_count(bin.types),
        format_nats(bin.cross_entropy_a),
        format_nats(bin.cross_entropy_b),
        element("strong", difference) if bin.is_significant else difference,
        format_nats(bin.standard_error),
        low if math.isnan(bin.interval[0]) else f"{low} to {high}",
    ]


def _draw(
    figure: Figure, comparison: FrequencyComparison, index_a: int, index_b: int, narrow: bool
) -> None:
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3.2, 1))
    bins = _drawn(comparison)
    above.axhline(0, color=INK, linewidth=0.9)
    for position, bin in enumerate(bins):
        if not math.isfinite(bin.difference):
            continue
        index = index_b if bin.difference > 0 else index_a
        color = series_color(index) if bin.is_significant else MUTED
        low, high = bin.interval
        above.plot([position, position], [low, high], color=color, linewidth=1.6)
        above.plot(
            position,
            bin.difference,
            color=color,
            marker=series_marker(index) if bin.is_significant else "o",
            markersize=7,
            markerfacecolor=color if bin.is_significant else PAPER,
            markeredgecolor=color,
            markeredgewidth=1.4,
        )
    above.set_ylabel("nats per token" if narrow else "difference (nats per token)")
    above.grid(axis="x", visible=False)
    above.tick_params(axis="x", length=0)
    above.margins(y=0.12)

    shares = [100 * bin.tokens / comparison.overall.tokens for bin in bins]
    draw_shares(
        below,
        [bin.label for bin in bins],
        shares,
        of="tokens",
        along="occurrences in the training set",
        narrow=narrow,
    )
    figure.align_ylabels()
