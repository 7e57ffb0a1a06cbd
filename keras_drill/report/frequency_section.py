"""The report's section on word frequency: which words one model predicts better."""

import math
from xml.etree import ElementTree

from matplotlib.figure import Figure

from keras_drill.analysis.frequency_bin import FrequencyBin
from keras_drill.analysis.frequency_comparison import FrequencyComparison
from keras_drill.report.elements import element, table
from keras_drill.report.formatting import format_count, format_nats
from keras_drill.report.inline_svg import inline_svg
from keras_drill.report.palette import (
    GRID,
    INK,
    MUTED,
    PAPER,
    point_key,
    series_color,
    series_marker,
)


def frequency_section(
    comparison: FrequencyComparison, index_a: int, index_b: int, prefix: str = "frequency"
) -> ElementTree.Element:
    """Cross-entropy difference of two models by training-set frequency: plot and table.

    Args:
        comparison: The comparison of models A and B.
        index_a: Position of model A's colour in the palette.
        index_b: Position of model B's.
        prefix: What the plot's ids begin with, unique on the page.
    """
    name_a, name_b = (element("bdi", name) for name in (comparison.name_a, comparison.name_b))
    coverage = f"{100 * comparison.confidence:g} %"
    keys = element(
        "ul",
        element("li", point_key(index_b), _copy(name_b), " better"),
        element("li", point_key(index_a), _copy(name_a), " better"),
        element("li", point_key(None), "interval includes zero"),
        class_="keys",
    )
    plot = inline_svg(
        lambda figure, narrow: _draw(figure, comparison, index_a, index_b, narrow),
        prefix,
        f"Cross-entropy of {comparison.name_a} minus that of {comparison.name_b} by training-set "
        "frequency of the word. The numbers are in the table below.",
    )
    caption = element(
        "figcaption",
        "Cross-entropy of ",
        _copy(name_a),
        " minus that of ",
        _copy(name_b),
        ", by how often the word occurs in the training set (lower bound included, upper "
        "excluded); below, each bin's share of the tokens. Error bars are ",
        f"{coverage} paired bootstrap intervals over blocks of {comparison.block_size} tokens; "
        "the variation between training runs with different seeds is not in them.",
    )
    header = [
        "training count",
        "tokens",
        "words",
        _copy(name_a),
        _copy(name_b),
        "difference",
        "std. error",
        f"{coverage} interval",
    ]
    return element(
        "section",
        element("h2", "By word frequency"),
        element("figure", keys, plot, caption),
        table(
            "Mean cross-entropy in nats per token by training-set frequency",
            header,
            [_row(bin.label, bin) for bin in comparison.bins],
            footer=_row("all", comparison.overall),
        ),
        element(
            "p",
            "Mean cross-entropies in nats per token. A difference is bold when its interval leaves "
            "out zero.",
            class_="note",
        ),
    )


def _copy(name: ElementTree.Element) -> ElementTree.Element:
    # An element can stand in only one place of a tree.
    return element(name.tag, name.text)


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
    bins = comparison.bins
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
    below.bar(range(len(bins)), shares, width=0.62, color=GRID, edgecolor=MUTED, linewidth=0.6)
    below.grid(axis="x", visible=False)
    below.set_ylabel("% tokens" if narrow else "% of tokens")
    below.set_xlim(-0.6, len(bins) - 0.4)
    below.set_xticks(
        range(len(bins)),
        [bin.label for bin in bins],
        rotation=55 if narrow else 0,
        rotation_mode="anchor",
        ha="right" if narrow else "center",
        va="top" if not narrow else "center",
    )
    below.set_xlabel("occurrences in the training set")
    figure.align_ylabels()
