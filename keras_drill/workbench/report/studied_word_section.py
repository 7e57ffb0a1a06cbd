"""The section about one word, for the page about senses of words."""

import dataclasses
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure

from keras_drill.workbench.report.page.elements import (
    direction,
    element,
    running_text,
    table,
    words,
)
from keras_drill.workbench.report.page.formatting import MISSING, format_count
from keras_drill.workbench.report.page.plot import (
    PAPER,
    inline_svg,
    keys,
    point_key,
    series_color,
    series_marker,
)

_TRACE = 0.05  # nats; as two senses with probabilities of about 0.34 and 0.66
_NEARLY_ALL = 0.95  # of a word's uses


@dataclasses.dataclass(frozen=True)
class StudiedWord:
    """A word with its senses in a text. Shape letters: S senses, n occurrences.

    Args:
        word: The word.
        senses: Ids of the senses, `[S]`, as in `keras-drill score --senses` and exported models.
        information: Mutual information of context and sense, in nats, see
            `keras_drill.workbench.analysis.WordSenses`.
        shares: Mean probability of each sense over the word's occurrences, `[S]`.
        theta: Kernel parameter of every sense, `[S]`; `None` without a kernel.
        nearest: The nearest other words of each sense, the nearest first.
        contexts: For each sense, `(text before, text after, probability of the sense)`.
        points: Context vectors of the occurrences, projected to a plane, `[n, 2]`.
        variance: Shares of the variance along the two axes of the plane.
        sense: The most probable sense of each occurrence, `[n]`, as a position in `senses`.
    """

    word: str
    senses: np.ndarray
    information: float
    shares: np.ndarray
    theta: np.ndarray | None
    nearest: tuple[tuple[str, ...], ...]
    contexts: tuple[tuple[tuple[str, str, float], ...], ...]
    points: np.ndarray
    variance: tuple[float, float]
    sense: np.ndarray

    @property
    def num_senses(self) -> int:
        """Number of senses."""
        return len(self.shares)

    @property
    def distinguishes_senses(self) -> bool:
        """Whether the sense depends on the context; true for words with one sense."""
        return self.num_senses < 2 or self.information >= _TRACE

    @property
    def verdict(self) -> str:
        """Warning for a word whose senses do not depend on the context."""
        if self.shares.max() > _NEARLY_ALL:
            return "The model uses only one sense of this word."
        return (
            "The model did not learn different senses of this word: their probabilities hardly "
            "depend on the context (mutual information "
            f"{max(self.information, 0.0):.3f} of at most {np.log(self.num_senses):.3f} nats). The "
            "differences below are small and are not meanings."
        )

    @property
    def occurrences(self) -> int:
        """Number of occurrences of the word."""
        return len(self.points)


def studied_word_section(word: StudiedWord, prefix: str) -> ElementTree.Element:
    """Builds the section about a word: context vectors by sense, nearest words, and contexts.

    The plot of context vectors is as in Figure 1 of the KerBS paper.

    Args:
        word: The word.
        prefix: Prefix of the ids in the plot, unique on the page.
    """
    rows: list[list[ElementTree.Element | str]] = [
        [
            element("div", point_key(place), f"sense {place + 1}", class_="run"),
            str(id),
            f"{100 * word.shares[place]:.0f} %",
            MISSING if word.theta is None else f"{word.theta[place]:.3f}".replace("-", "−"),
            words(word.nearest[place]),
        ]
        for place, id in enumerate(word.senses)
    ]
    return element(
        "section",
        element("h2", "The word ", element("bdi", word.word)),
        *_warning(word),
        _plane(word, prefix),
        table(
            f"Senses of {word.word}",
            ["sense", "id", "share of uses", "θ", "nearest words"],
            rows,
        ),
        element("p", "Contexts in which each sense is the most probable one:", class_="note"),
        element("div", *_contexts(word), class_="cards"),
        class_="words",
    )


def _plane(word: StudiedWord, prefix: str) -> ElementTree.Element:
    """Plots the hidden states of the word's contexts in a plane."""
    first, second = (f"{100 * share:.0f} %" for share in word.variance)
    return element(
        "figure",
        keys(
            *(
                (point_key(place), f"sense {place + 1}")
                for place in np.unique(word.sense)  # the other senses have no points
            )
        ),
        inline_svg(
            lambda figure, narrow: _draw(figure, word),
            prefix,
            f"Context vectors of {word.word} in a plane, by sense.",
        ),
        element(
            "figcaption",
            f"Context vectors of the {format_count(word.occurrences)} occurrences of ",
            element("bdi", element("strong", word.word)),
            " in the text, projected to their first two principal components "
            f"({first} and {second} of the variance). The marker shows the most probable sense.",
        ),
    )


def _contexts(word: StudiedWord) -> list[ElementTree.Element]:
    """Lists the contexts of each sense that has contexts."""
    return [
        element(
            "figure",
            *(
                element("blockquote", _context(word.word, before, after))
                for before, after, _ in word.contexts[place]
            ),
            element(
                "figcaption",
                point_key(place),
                f"sense {place + 1}: probability {_probabilities(word, place)}",
                class_="origin",
            ),
            class_="card",
        )
        for place in range(word.num_senses)
        if word.contexts[place]
    ]


def _context(word: str, before: str, after: str) -> ElementTree.Element:
    """Makes the text around a word. Right-to-left parts do not change the order."""
    return element(
        "p",
        *running_text(before),
        " ",
        element("bdi", element("strong", word)),
        " ",
        *running_text(after),
        dir=direction(f"{before} {word} {after}"),
    )


def _warning(word: StudiedWord) -> list[ElementTree.Element]:
    """Makes the warning `verdict` if the senses do not depend on the context, else nothing."""
    if word.distinguishes_senses:
        return []
    return [element("p", word.verdict, class_="warning")]


def _probabilities(word: StudiedWord, place: int) -> str:
    values = [probability for _, _, probability in word.contexts[place]]
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _draw(figure: Figure, word: StudiedWord) -> None:
    axes = figure.subplots()
    size = 5 if word.occurrences <= 200 else 3.5 if word.occurrences <= 1000 else 2.5
    for sense in range(word.num_senses):
        points = word.points[word.sense == sense]
        axes.plot(
            points[:, 0],
            points[:, 1],
            linestyle="none",
            marker=series_marker(sense),
            markersize=size,
            color=series_color(sense),
            markeredgecolor=PAPER,
            markeredgewidth=0.3,
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("first principal component")
    axes.set_ylabel("second")
