"""The sections of the page about the statistics of examples, with plots."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from matplotlib.figure import Figure

from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.report.page.formatting import MISSING, format_count
from keras_drill.workbench.report.page.plot import inline_svg, run_keys, series_color, series_marker

_FEW = 10


def statistics_section(columns: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list:
    """Makes a section for each column.

    Args:
        columns: Statistics by column and split, as `StatisticsGen` writes them.
    """
    return [
        _section(name, splits, "Statistics" if len(columns) == 1 else f"Statistics: {name}")
        for name, splits in columns.items()
    ]


def _section(column: str, splits: Mapping[str, Mapping], title: str) -> ElementTree.Element:
    names = list(splits)
    key = run_keys(enumerate(names))
    return element(
        "section",
        element("h2", title),
        _table(splits),
        element(
            "figure",
            key,
            inline_svg(
                lambda figure, narrow: _draw_lengths(figure, splits, narrow),
                f"lengths-{column}",
                "Lines by their length in tokens",
            ),
            element(
                "figcaption",
                "Share of the lines by their length in tokens. Duplicates are lines that repeat an "
                "earlier line. Empty lines count neither as duplicates nor as lines also in train.",
            ),
        ),
        element(
            "figure",
            run_keys(enumerate(names)),
            inline_svg(
                lambda figure, narrow: _draw_frequencies(figure, splits),
                f"frequencies-{column}",
                "Frequency of the most frequent tokens by their rank",
            ),
            element("figcaption", "Frequency of the most frequent tokens, by their rank."),
        ),
    )


def _table(splits: Mapping[str, Mapping]) -> ElementTree.Element:
    def share(name: str) -> list[str]:
        return [f"{each[name]:.1%}" if name in each else MISSING for each in splits.values()]

    def count(name: str) -> list[str]:
        return [format_count(each[name]) for each in splits.values()]

    quantiles = [
        ", ".join(f"{q}: {each['length_quantiles'][q]:,}" for q in ("5%", "50%", "95%"))
        for each in splits.values()
    ]
    scripts = [
        ", ".join(f"{name} {part:.1%}" for name, part in each["scripts"].items() if part > 5e-4)
        for each in splits.values()
    ]
    frequent = [
        element("bdi", " ".join(token for token, _ in each["frequent_tokens"][:_FEW]))
        for each in splits.values()
    ]
    rows: list[list[ElementTree.Element | str]] = [
        ["lines", *count("lines")],
        ["empty", *share("empty_share")],
        ["duplicates", *share("duplicate_share")],
        ["also in train", *share("in_train_share")],
        ["tokens", *count("tokens")],
        ["distinct tokens", *count("distinct_tokens")],
        ["tokens not in train", *share("unseen_share")],
        ["quantiles of line length", *quantiles],
        ["longest line", *count("max_length")],
        ["scripts", *scripts],
        ["control characters", *count("control_characters")],
        ["most frequent tokens", *frequent],
    ]
    return table("Statistics by split", ["", *splits], rows)


def _draw_lengths(figure: Figure, splits: Mapping[str, Mapping], narrow: bool) -> None:
    axes = figure.subplots()
    longest = max((each["length_histogram"] for each in splits.values()), key=len)
    labels = [str(a) if a == b else f"{a}–{b}" for a, b, _ in longest]
    for index, each in enumerate(splits.values()):
        total = max(each["lines"], 1)
        shares = [100 * number / total for _, _, number in each["length_histogram"]]
        axes.plot(
            range(len(shares)),
            shares,
            color=series_color(index),
            marker=series_marker(index),
            markersize=5,
            linewidth=1.8,
        )
    axes.set_xticks(range(len(labels)), labels, rotation=55 if narrow else 30, ha="right")
    axes.set_xlabel("tokens in the line")
    axes.set_ylabel("% of lines")
    axes.set_ylim(bottom=0)


def _draw_frequencies(figure: Figure, splits: Mapping[str, Mapping]) -> None:
    axes = figure.subplots()
    for index, each in enumerate(splits.values()):
        shares = [100 * share for _, share in each["frequent_tokens"]]
        axes.plot(
            range(1, len(shares) + 1),
            shares,
            color=series_color(index),
            marker=series_marker(index),
            markersize=5,
            markevery=[rank for rank in (0, 2, 9, 29, 99, 299, 999) if rank < len(shares)],
            linewidth=1.8,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rank")
    axes.set_ylabel("% of tokens")
