"""The section on attention: the source words that a model attends to for each output word."""

from xml.etree import ElementTree

import numpy as np

from keras_drill.workbench.report.page.elements import element
from keras_drill.workbench.report.page.formatting import format_count
from keras_drill.workbench.report.page.plot import point_key
from keras_drill.workbench.tasks.sequence_to_sequence.sections.evaluated_translations import (
    AttentionMap,
    EvaluatedTranslations,
)

_SCALE = (0.25, 0.5, 0.75, 1.0)


def attention_section(evaluated: EvaluatedTranslations) -> ElementTree.Element:
    """Builds a heat map for each sentence and system with an attention map.

    The maps of one sentence are side by side.
    """
    places = sorted({place for system in evaluated.systems for place in system.attention})
    groups = []
    for place in places:
        figures = [
            _figure(index, system.name, place, system.attention[place])
            for index, system in enumerate(evaluated.systems)
            if place in system.attention
        ]
        groups.append(element("div", *figures, class_="maps"))
    scale = [element("span", _cell(value), f" {value:g} ") for value in _SCALE]
    return element(
        "section",
        element("h2", "Attention"),
        element(
            "p",
            "Each row is a word of the output, each column a word of the source. The stronger the "
            "colour of a cell, the more attention the output word pays to the source word. ",
            element("span", *scale, class_="scale"),
            class_="note",
        ),
        *groups,
    )


def _figure(index: int, name: str, place: int, attention: AttentionMap) -> ElementTree.Element:
    caption = f"Attention of {name} in sentence {place + 1}"
    columns = [
        element("th", element("bdi", word), scope="col", title=word)
        for word in attention.source_words
    ]
    rows = [
        element(
            "tr",
            element("th", element("bdi", word), scope="row", title=word),
            *(
                element("td", _cell(weight), title=f"{word} – {source}: {weight:.2f}")
                for source, weight in zip(attention.source_words, weights, strict=True)
            ),
        )
        for word, weights in zip(
            attention.target_words, np.clip(attention.weights, 0, 1).tolist(), strict=True
        )
    ]
    shown = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", element("td"), *columns)),
        element("tbody", *rows),
        class_="map",
    )
    return element(
        "figure",
        element(
            "figcaption",
            point_key(index),
            element("bdi", name),
            element("span", f"sentence {format_count(place + 1)}", class_="sampler"),
            class_="origin",
        ),
        element("div", shown, class_="scroll", role="region", aria_label=caption, tabindex=0),
    )


def _cell(weight: float) -> ElementTree.Element:
    """Makes a square whose opacity is the weight, with the weight for screen readers."""
    return element("i", f"{weight:.2f}", style=f"opacity: {weight:.3g}")
