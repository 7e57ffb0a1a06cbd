"""Report sections with bins: BLEU by source length, F1 of words by training-set frequency."""

import math
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from matplotlib.figure import Figure

from keras_drill.workbench.analysis.compare_translations import LengthBin
from keras_drill.workbench.analysis.word_accuracy import (
    WordAccuracies,
    WordAccuracy,
    WordAccuracyBin,
)
from keras_drill.workbench.report.page.bins import draw_shares
from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.report.page.formatting import MISSING, format_count
from keras_drill.workbench.report.page.plot import (
    PAPER,
    inline_svg,
    keys,
    point_key,
    series_color,
    series_marker,
)

_NOTE = "The intervals do not include the variation between training runs with different seeds."


def length_section(bins: Sequence[LengthBin], prefix: str = "length") -> ElementTree.Element:
    """Builds a plot and a table of BLEU by number of words in the source.

    Args:
        bins: Non-empty result of `keras_drill.workbench.analysis.bleu_by_length`.
        prefix: Prefix of the ids in the plot, unique on the page.
    """
    names = list(bins[0].bleu)
    total = sum(bin.sentences for bin in bins)
    plot = _plot(
        [bin.label for bin in bins],
        {name: [(bin.bleu[name].score, bin.bleu[name].interval) for bin in bins] for name in names},
        [100 * bin.sentences / total for bin in bins],
        ("BLEU", "sentences", "words in the source"),
        prefix,
    )
    rows: list[list[ElementTree.Element | str]] = []
    for bin in bins:
        scores = [bin.bleu[name] for name in names]
        cells: list[ElementTree.Element | str] = []
        for each in scores:
            low, high = each.interval
            half = "" if math.isnan(low) else f" ± {(high - low) / 2:.1f}"
            text = f"{each.score:.1f}{half}"
            cells.append(element("strong", text) if each.is_significant else text)
        rows.append([bin.label, format_count(bin.sentences), *cells])
    return element(
        "section",
        element("h2", "By length of the source"),
        element(
            "figure",
            _named(names),
            plot,
            element(
                "figcaption",
                "Above: BLEU of the sentences in each bin of source lengths. Below: share of the "
                f"sentences in each bin. Error bars are 95 % bootstrap intervals. {_NOTE}",
            ),
        ),
        table(
            "BLEU by number of words in the source",
            ["words in the source", "sentences", *(element("bdi", name) for name in names)],
            rows,
        ),
        *_bold_note(names, "the difference from the first run has a p-value below 0.05"),
    )


def word_accuracy_section(
    accuracies: WordAccuracies, prefix: str = "word-accuracy"
) -> ElementTree.Element:
    """Builds a plot and a table of F1 of words by training-set frequency.

    A folded table has precision and recall.

    Args:
        accuracies: Result of `keras_drill.workbench.analysis.compare_word_accuracy`.
        prefix: Prefix of the ids in the plot, unique on the page.
    """
    names = list(accuracies.overall.systems)
    drawn = [bin for bin in accuracies.bins if bin.wanted]
    coverage = f"{100 * accuracies.confidence:g} %"
    plot = _plot(
        [bin.label for bin in drawn],
        {
            name: [
                (100 * each.f1, (100 * each.interval[0], 100 * each.interval[1]))
                for each in (bin.systems[name] for bin in drawn)
            ]
            for name in names
        },
        [100 * bin.wanted / accuracies.overall.wanted for bin in drawn],
        ("F1 (%)", "words", "occurrences in the training set"),
        prefix,
    )
    header: list[ElementTree.Element | str] = ["training count", "words", "different"]
    header += [element("bdi", name) for name in names]
    header += [
        element("span", element("bdi", name), element("br"), "difference") for name in names[1:]
    ]
    return element(
        "section",
        element("h2", "Words by frequency"),
        element(
            "figure",
            _named(names),
            plot,
            element(
                "figcaption",
                "Above: F1 of the words in each bin of training-set frequency. F1 is the harmonic "
                "mean of precision and recall. Recall is the share of the reference words that are "
                "in the output, precision the share of the output words that are in the reference. "
                "Below: share of "
                f"the reference words in each bin. Error bars are {coverage} bootstrap intervals "
                f"over sentences. {_NOTE}",
            ),
        ),
        table(
            "F1 of words by training-set frequency",
            header,
            [_row(bin.label, bin) for bin in accuracies.bins],
            footer=_row("all", accuracies.overall),
        ),
        *_bold_note(names, "the interval of the difference from the first run excludes zero"),
        _precision_and_recall(accuracies, names),
    )


def _plot(
    labels: Sequence[str],
    systems: Mapping[str, Sequence[tuple[float, tuple[float, float]]]],
    shares: Sequence[float],
    words: tuple[str, str, str],
    prefix: str,
) -> ElementTree.Element:
    """Plots the values and intervals of all systems by bin, above the shares of the bins.

    Args:
        labels: Names of the bins.
        systems: Value and interval by bin of each system, by name.
        shares: Shares of the bins in percent.
        words: Name of the metric, unit of the shares, and name of the quantity that is binned.
        prefix: Prefix of the ids in the plot.
    """
    measure, of, along = words

    def draw(figure: Figure, narrow: bool) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3.2, 1))
        step = min(0.2, 0.7 / len(systems))
        for index, values in enumerate(systems.values()):
            shift = (index - (len(systems) - 1) / 2) * step
            color = series_color(index)
            for place, (value, interval) in enumerate(values):
                above.plot([place + shift] * 2, interval, color=color, linewidth=1.4)
                above.plot(
                    place + shift,
                    value,
                    color=color,
                    marker=series_marker(index),
                    markersize=5 if narrow else 6,
                    markeredgecolor=PAPER,
                    markeredgewidth=0.6,
                )
        above.set_ylabel(measure)
        above.grid(axis="x", visible=False)
        above.tick_params(axis="x", length=0)
        above.margins(y=0.1)
        draw_shares(below, labels, shares, of, along, narrow)
        figure.align_ylabels()

    names = ", ".join(systems)
    label = f"{measure} of {names} by {along}. The numbers are in the table below."
    return inline_svg(draw, prefix, label)


def _named(names: Sequence[str]) -> ElementTree.Element:
    return keys(*((point_key(index), element("bdi", name)) for index, name in enumerate(names)))


def _bold_note(names: Sequence[str], when: str) -> list[ElementTree.Element]:
    return [element("p", f"Bold where {when}.", class_="note")] if len(names) > 1 else []


def _row(label: str, bin: WordAccuracyBin) -> list[ElementTree.Element | str]:
    systems = list(bin.systems.values())
    row: list[ElementTree.Element | str] = [
        label,
        format_count(bin.wanted),
        format_count(bin.types),
        *(_share(each.f1) for each in systems),
    ]
    row += [_difference(each) for each in systems[1:]]
    return row


def _difference(accuracy: WordAccuracy) -> ElementTree.Element | str:
    """Makes a cell with the difference from the first system, and its interval below."""
    low, high = accuracy.difference_interval
    text = _signed(accuracy.difference)
    if math.isnan(low):
        return text
    return element(
        "span",
        element("strong", text) if accuracy.is_significant else text,
        element("small", f"{_signed(low)} to {_signed(high)}"),
    )


def _precision_and_recall(accuracies: WordAccuracies, names: Sequence[str]) -> ElementTree.Element:
    header: list[ElementTree.Element | str] = ["training count"]
    for name in names:
        header += [
            element("span", element("bdi", name), element("br"), measure)
            for measure in ("precision", "recall")
        ]

    def cells(systems: Mapping[str, WordAccuracy]) -> list[ElementTree.Element | str]:
        return [
            _share(value) for each in systems.values() for value in (each.precision, each.recall)
        ]

    return element(
        "details",
        element("summary", "Precision and recall"),
        table(
            "Precision and recall of words by training-set frequency",
            header,
            [[bin.label, *cells(bin.systems)] for bin in accuracies.bins],
            footer=["all", *cells(accuracies.overall.systems)],
        ),
    )


def _share(value: float) -> str:
    return MISSING if math.isnan(value) else f"{100 * value:.1f}"


def _signed(value: float) -> str:
    return MISSING if math.isnan(value) else f"{100 * value:+.1f}".replace("-", "−")
