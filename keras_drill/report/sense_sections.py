"""The sections of the senses page that are about the whole model."""

from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from keras_drill.report.elements import element, printable, table
from keras_drill.report.formatting import format_count
from keras_drill.report.inline_svg import inline_svg
from keras_drill.report.palette import (
    GRID,
    INK,
    MUTED,
    PAPER,
    series_color,
    series_key,
    series_marker,
)
from keras_drill.report.sense_study import SenseStudy


def words_by_senses_section(study: SenseStudy) -> ElementTree.Element:
    """Words by their number of senses (Table 6 of the paper)."""
    rows = [
        [
            str(senses),
            format_count(number),
            f"{100 * number / study.vocabulary_size:.1f} %",
            element("bdi", " · ".join(examples)),
        ]
        for senses, (number, examples) in study.by_senses.items()
    ]
    return element(
        "section",
        element("h2", "Words by number of senses"),
        table(
            "Words by number of senses",
            ["senses", "words", "of all", "the most frequent of them"],
            rows,
        ),
        class_="words",
    )


def theta_section(study: SenseStudy) -> ElementTree.Element:
    """θ of the words that were looked at, over the distribution of all (Figure 3)."""
    most = max(word.num_senses for word in study.words)
    keys = [_sense_key(sense) for sense in range(most)]
    plot = inline_svg(
        lambda figure, narrow: _draw_theta(figure, study),
        "theta",
        "Kernel parameters of the senses of "
        + ", ".join(word.word for word in study.words)
        + ". The numbers are in the tables of the words.",
    )
    return element(
        "section",
        element("h2", "Kernel parameters"),
        element(
            "figure",
            element("ul", *keys, class_="keys"),
            plot,
            element(
                "figcaption",
                f"Above, θ of all {format_count(len(study.theta))} senses; below, θ of the senses "
                "of some words, each larger the more often it is used. A kernel of greater θ falls "
                "off more slowly around its sense, for contexts that vary more.",
            ),
        ),
    )


def kernel_section(study: SenseStudy) -> ElementTree.Element:
    """Shapes of kernels (Figure 2)."""
    keys = [
        element("li", series_key(index), f"θ = {_signed(theta)}")
        for index, theta in enumerate(study.kernels)
    ]
    plot = inline_svg(
        lambda figure, narrow: _draw_kernels(figure, study),
        "kernels",
        "Kernels by the angle between context and sense, for θ of "
        + ", ".join(map(_signed, study.kernels)),
    )
    return element(
        "section",
        element("h2", "Shapes of kernels"),
        element(
            "figure",
            element("ul", *keys, class_="keys"),
            plot,
            element(
                "figcaption",
                "Score of a context vector h and a sense w over |h||w|, by the angle between them. "
                "θ = 0 is the cosine, the inner product of a softmax; the least and the greatest θ "
                "of this model are among the others.",
            ),
        ),
    )


def _sense_key(sense: int) -> ElementTree.Element:
    return element("li", series_key(sense), f"sense {sense + 1}")


def _signed(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _draw_theta(figure: Figure, study: SenseStudy) -> None:
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2.4))
    above.hist(study.theta, bins=60, color=GRID, edgecolor=MUTED, linewidth=0.5)
    above.grid(axis="x", visible=False)
    above.set_ylabel("senses")
    for row, word in enumerate(study.words):
        below.plot([word.theta.min(), word.theta.max()], [row, row], color=GRID, linewidth=3)
        for sense, (theta, share) in enumerate(zip(word.theta, word.shares, strict=True)):
            below.plot(
                theta,
                row,
                marker=series_marker(sense),
                color=series_color(sense),
                markersize=4 + 7 * np.sqrt(share),
                markeredgecolor=PAPER,
                markeredgewidth=0.7,
            )
    words = [printable(word.word) for word in study.words]
    below.set_yticks(range(len(words)), words, parse_math=False)
    below.set_ylim(len(words) - 0.5, -0.5)
    below.set_xlabel("θ")


def _draw_kernels(figure: Figure, study: SenseStudy) -> None:
    axes = figure.subplots()
    axes.axhline(0, color=INK, linewidth=0.9)
    places = slice(0, None, max(1, len(study.angles) // 9))
    for index, values in enumerate(study.kernels.values()):
        color = series_color(index)
        axes.plot(study.angles, values, color=color, linewidth=1.6)
        axes.plot(
            study.angles[places],
            values[places],
            color=color,
            linestyle="none",
            marker=series_marker(index),
            markersize=4.5,
            markeredgecolor=PAPER,
            markeredgewidth=0.6,
            clip_on=False,
        )
    axes.set_xlim(0, 180)
    axes.xaxis.set_major_locator(MultipleLocator(45))
    axes.set_xlabel("angle between context and sense (degrees)")
    axes.set_ylabel("score / |h||w|")
