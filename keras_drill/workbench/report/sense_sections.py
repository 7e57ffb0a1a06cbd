"""Sections about the whole model, for the page about senses of words."""

import dataclasses
from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from keras_drill.workbench.report.page.elements import element, printable, table, words
from keras_drill.workbench.report.page.formatting import format_count, format_significant
from keras_drill.workbench.report.page.plot import (
    GRID,
    INK,
    MUTED,
    PAPER,
    inline_svg,
    keys,
    point_key,
    series_color,
    series_key,
    series_marker,
)
from keras_drill.workbench.report.studied_word_section import StudiedWord

_LONGEST_LABEL = 18


@dataclasses.dataclass(frozen=True)
class SenseStudy:
    """The senses of a model's words.

    Args:
        name: Name of the run.
        output_layer: Description of the output layer.
        text: Description of the text that was read.
        by_senses: Maps a number of senses to the number of words that have it, and examples of
            these words.
        words: The words that were studied.
        theta: Kernel parameters of all senses, `[M]`; `None` without a kernel.
        angles: Angles in degrees at which kernels were computed, `[A]`.
        kernels: Maps a kernel parameter to the kernel's values at `angles`, in the order of
            plotting; empty without a kernel.
    """

    name: str
    output_layer: str
    text: str
    by_senses: dict[int, tuple[int, tuple[str, ...]]]
    words: tuple[StudiedWord, ...]
    theta: np.ndarray | None
    angles: np.ndarray
    kernels: dict[float, np.ndarray]

    @property
    def vocabulary_size(self) -> int:
        """Number of words in the vocabulary."""
        return sum(number for number, _ in self.by_senses.values())

    @property
    def mean_senses(self) -> float:
        """Mean number of senses per word."""
        senses = sum(senses * number for senses, (number, _) in self.by_senses.items())
        return senses / self.vocabulary_size


def words_by_senses_section(study: SenseStudy) -> ElementTree.Element:
    """Builds the table of words by their number of senses (Table 6 of the KerBS paper)."""
    rows: list[list[ElementTree.Element | str]] = [
        [
            str(senses),
            format_count(number),
            f"{100 * number / study.vocabulary_size:.1f} %",
            words(examples),
        ]
        for senses, (number, examples) in study.by_senses.items()
    ]
    return element(
        "section",
        element("h2", "Words by number of senses"),
        table(
            "Words by number of senses",
            ["senses", "words", "share of all words", "most frequent words"],
            rows,
        ),
        class_="words",
    )


def theta_section(theta: np.ndarray, studied: Sequence[StudiedWord]) -> ElementTree.Element:
    """Plots θ of the shown words over the distribution of all θ (Figure 3 of the KerBS paper)."""
    most = max(word.num_senses for word in studied)
    plot = inline_svg(
        lambda figure, narrow: _draw_theta(figure, theta, studied),
        "theta",
        "Kernel parameters of the senses of "
        + ", ".join(word.word for word in studied)
        + ". The numbers are in the tables of the words.",
    )
    return element(
        "section",
        element("h2", "Kernel parameters"),
        element(
            "figure",
            keys(*((point_key(place), _ordinal(place)) for place in range(most))),
            plot,
            element(
                "figcaption",
                f"Above: kernel parameter θ of all {format_count(len(theta))} senses. Below: θ of "
                "the senses of some words, in the order of their ids; larger markers are senses "
                "that are used more often. A kernel with a larger θ is wider: it falls more slowly "
                "with the distance from its sense.",
            ),
        ),
    )


def kernel_section(study: SenseStudy) -> ElementTree.Element:
    """Plots the shapes of kernels (Figure 2 of the KerBS paper)."""
    plot = inline_svg(
        lambda figure, narrow: _draw_kernels(figure, study),
        "kernels",
        "Kernels by the angle between context and sense, for θ of "
        + ", ".join(map(format_significant, study.kernels)),
    )
    return element(
        "section",
        element("h2", "Shapes of kernels"),
        element(
            "figure",
            keys(
                *(
                    (series_key(index), f"θ = {format_significant(theta)}")
                    for index, theta in enumerate(study.kernels)
                )
            ),
            plot,
            element(
                "figcaption",
                "Score of a context vector h and a sense w, divided by |h||w|, by the angle "
                "between h and w. θ = 0 gives the inner product of a softmax. The smallest and "
                "the largest θ of this model are also shown.",
            ),
        ),
    )


def _ordinal(place: int) -> str:
    """Returns the name of a sense by its position among the senses of a word.

    >>> _ordinal(0), _ordinal(6)
    ('first sense', '7th sense')
    """
    names = ("first", "second", "third", "fourth")
    return f"{names[place] if place < len(names) else f'{place + 1}th'} sense"


def _shortened(word: str) -> str:
    """Shortens a word to leave room for the plot beside it.

    >>> _shortened("bank"), _shortened("x" * 90)
    ('bank', 'xxxxxxxxxxxxxxxxx…')
    """
    return word if len(word) <= _LONGEST_LABEL else f"{word[: _LONGEST_LABEL - 1]}…"


def _draw_theta(figure: Figure, theta: np.ndarray, studied: Sequence[StudiedWord]) -> None:
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2.4))
    numbers, edges = np.histogram(theta, bins=60)
    above.stairs(numbers, edges, fill=True, facecolor=GRID, edgecolor=MUTED, linewidth=0.5)
    above.grid(axis="x", visible=False)
    above.set_ylabel("senses")
    thetas = [word.theta for word in studied if word.theta is not None]  # of all or none
    for row, (word, values) in enumerate(zip(studied, thetas, strict=True)):
        below.plot([values.min(), values.max()], [row, row], color=GRID, linewidth=3)
        for sense, (value, share) in enumerate(zip(values, word.shares, strict=True)):
            below.plot(
                value,
                row,
                marker=series_marker(sense),
                color=series_color(sense),
                markersize=4 + 7 * np.sqrt(share),
                markeredgecolor=PAPER,
                markeredgewidth=0.7,
            )
    labels = [_shortened(printable(word.word)) for word in studied]
    below.set_yticks(range(len(labels)), labels, parse_math=False)
    below.set_ylim(len(labels) - 0.5, -0.5)
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
