"""The section of the senses page on one word."""

from xml.etree import ElementTree

from matplotlib.figure import Figure

from keras_drill.report.elements import element, table
from keras_drill.report.formatting import MISSING, format_count
from keras_drill.report.inline_svg import inline_svg
from keras_drill.report.palette import PAPER, point_key, series_color, series_marker
from keras_drill.report.studied_word import StudiedWord


def studied_word_section(word: StudiedWord, prefix: str) -> ElementTree.Element:
    """Context vectors by sense (Figure 1), nearest words and contexts of every sense.

    Args:
        word: The word.
        prefix: What the plot's ids begin with, unique on the page.
    """
    first, second = (f"{100 * share:.0f} %" for share in word.variance)
    figure = element(
        "figure",
        element(
            "ul",
            *(
                element("li", point_key(sense), f"sense {sense + 1}")
                for sense in range(word.num_senses)
            ),
            class_="keys",
        ),
        inline_svg(
            lambda figure, narrow: _draw(figure, word),
            prefix,
            f"Context vectors of {word.word} in a plane, by sense.",
        ),
        element(
            "figcaption",
            f"Context vectors of the {format_count(word.occurrences)} places in the text where ",
            element("bdi", word.word),
            " occurs, projected to their two principal components "
            f"({first} and {second} of the variance), by their most probable sense.",
        ),
    )
    rows = [
        [
            element("div", point_key(sense), f"sense {sense + 1}", class_="run"),
            f"{100 * word.shares[sense]:.0f} %",
            MISSING if word.theta is None else f"{word.theta[sense]:.3f}".replace("-", "−"),
            element("bdi", " · ".join(word.nearest[sense])),
        ]
        for sense in range(word.num_senses)
    ]
    contexts = [
        element(
            "figure",
            *(
                element(
                    "blockquote",
                    element("p", before, " ", element("strong", word.word), " ", after, dir="auto"),
                )
                for before, after, _ in word.contexts[sense]
            ),
            element(
                "figcaption",
                point_key(sense),
                f"sense {sense + 1}: probability {_probabilities(word, sense)}",
                class_="origin",
            ),
            class_="card",
        )
        for sense in range(word.num_senses)
        if word.contexts[sense]
    ]
    return element(
        "section",
        element("h2", "The word ", element("bdi", word.word)),
        figure,
        table(
            f"Senses of {word.word}",
            ["sense", "share of uses", "θ", "nearest words"],
            rows,
        ),
        element("p", "The contexts in which each sense is most probable:", class_="note"),
        element("div", *contexts, class_="cards"),
        class_="words",
    )


def _probabilities(word: StudiedWord, sense: int) -> str:
    values = [probability for _, _, probability in word.contexts[sense]]
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
