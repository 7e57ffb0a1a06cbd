"""Report sections with texts: outputs of all systems, and the largest differences."""

import difflib
import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import numpy as np

from keras_drill.workbench.report.page.elements import direction, element, running_text
from keras_drill.workbench.report.page.formatting import format_count
from keras_drill.workbench.report.page.plot import point_key
from keras_drill.workbench.tasks.sequence_to_sequence.sections.evaluated_translations import (
    EvaluatedTranslations,
)

_LONGEST = 1000  # maximum number of characters


def examples_section(evaluated: EvaluatedTranslations, number: int = 8) -> ElementTree.Element:
    """Builds a section with sources, references and outputs of some sentences.

    The sentences are spread evenly over the test set.

    Args:
        evaluated: The systems.
        number: Maximum number of sentences.
    """
    total = len(evaluated.sources)
    places = np.unique(np.linspace(0, total - 1, min(number, total)).astype(int))
    spread = f"{len(places)} of the {format_count(total)} sentences, spread evenly over the text. "
    return element(
        "section",
        element("h2", "Texts side by side"),
        element("p", spread, *_legend(), class_="note"),
        element("div", *(_example(evaluated, int(place)) for place in places), class_="stack"),
    )


def differences_section(evaluated: EvaluatedTranslations) -> ElementTree.Element:
    """Builds a section with the sentences on which systems differ most from the first one."""
    parts: list[ElementTree.Element] = []
    first = evaluated.systems[0].name
    for name, differences in evaluated.comparison.differences.items():
        groups = {
            True: [each for each in differences if each.difference > 0],
            False: [each for each in differences if each.difference < 0],
        }
        for is_better, found in groups.items():
            if found:
                better, worse = (name, first) if is_better else (first, name)
                parts.append(
                    element("h3", element("bdi", better), " ahead of ", element("bdi", worse))
                )
                examples = [
                    _example(evaluated, each.index, {first: each.score_a, name: each.score_b})
                    for each in found
                ]
                parts.append(element("div", *examples, class_="stack"))
    if not parts:
        parts.append(element("p", "All sentences have equal scores."))
    return element(
        "section",
        element("h2", "Where the models differ most"),
        element(
            "p", "The sentences with the largest differences in chrF. ", *_legend(), class_="note"
        ),
        *parts,
    )


def _legend() -> list[ElementTree.Element | str]:
    return [
        "Words that differ from the reference are ",
        element("mark", "underlined"),
        "; ",
        _gap(),
        " marks places where words of the reference are missing.",
    ]


def _gap() -> ElementTree.Element:
    return element("span", "[…]", class_="gap", role="img", aria_label="missing words")


def _example(
    evaluated: EvaluatedTranslations, place: int, scores: Mapping[str, float] | None = None
) -> ElementTree.Element:
    """Builds the texts of one sentence, only of systems in `scores` unless `scores` is `None`."""
    each = evaluated.references[place]
    references = [each] if isinstance(each, str) else list(each)
    rows = [element("dt", "source"), _plain(evaluated.sources[place])]
    for number, reference in enumerate(references, start=1):
        name = "reference" if len(references) == 1 else f"reference {number}"
        rows += [element("dt", name), _plain(reference)]
    for index, system in enumerate(evaluated.systems):
        if scores is not None and system.name not in scores:
            continue
        label = element("dt", point_key(index), element("bdi", system.name))
        if scores is not None:
            label.append(element("small", f"chrF {scores[system.name]:.1f}"))
        rows += [label, _marked(system.hypotheses[place], references)]
    caption = element("figcaption", f"sentence {format_count(place + 1)}")
    return element("figure", element("dl", *rows), caption, class_="card texts")


def _plain(text: str) -> ElementTree.Element:
    shown = running_text(_cut(text)) if text.strip() else [_empty()]
    return element("dd", *shown, dir=direction(text))


def _marked(text: str, references: Sequence[str]) -> ElementTree.Element:
    """Marks the parts of a text that the nearest reference does not contain."""
    pieces = split_pieces(_cut(text.strip()))
    words = [piece for piece in pieces if not piece.isspace()]
    matchers = [
        difflib.SequenceMatcher(
            None,
            [piece for piece in split_pieces(_cut(reference)) if not piece.isspace()],
            words,
            autojunk=False,
        )
        for reference in references
    ]
    nearest = max(matchers, key=lambda matcher: matcher.ratio())
    differs = [False] * len(words)
    gaps = set()
    for kind, _, _, start, stop in nearest.get_opcodes():
        if kind == "delete":
            gaps.add(start)
        elif kind != "equal":
            differs[start:stop] = [True] * (stop - start)
    parts = _assemble(pieces, differs, gaps)
    return element("dd", *(parts or [_empty()]), dir=direction(text))


def _assemble(
    pieces: Sequence[str], differs: list[bool], gaps: set[int]
) -> list[ElementTree.Element | str]:
    """Makes elements from words and spaces. Adjacent words that differ share one mark."""
    runs: list[tuple[str, str]] = []
    place = 0
    for piece in pieces:
        if piece.isspace():
            within = differs[max(place - 1, 0) : place + 1] == [True, True] and place not in gaps
            runs.append(("differs" if within else "same", piece))
            continue
        if place in gaps:
            runs.append(("gap", ""))
        runs.append(("differs" if differs[place] else "same", piece))
        place += 1
    if place in gaps:
        runs += [("same", " " if place else ""), ("gap", "")]
    parts: list[ElementTree.Element | str] = []
    for kind, run in itertools.groupby(runs, key=lambda run: run[0]):
        text = "".join(piece for _, piece in run)
        if kind == "gap":
            parts.append(_gap())
        elif kind == "differs":
            parts.append(element("mark", *running_text(text)))
        else:
            parts += running_text(text)
    return parts


def split_pieces(text: str) -> list[str]:
    """Splits a text into words, the punctuation around them, and the spaces between.

    >>> split_pieces("„Ja“, a well-known  dog.")
    ['„', 'Ja', '“', ',', ' ', 'a', ' ', 'well-known', '  ', 'dog', '.']
    """
    pieces: list[str] = []
    for chunk in re.findall(r"\s+|\S+", text):
        start, stop = 0, len(chunk)
        while start < stop and _is_punctuation(chunk[start]):
            start += 1
        while stop > start and _is_punctuation(chunk[stop - 1]):
            stop -= 1
        pieces += [*chunk[:start], *([chunk[start:stop]] if start < stop else []), *chunk[stop:]]
    return pieces


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _empty() -> ElementTree.Element:
    return element("span", "(nothing)", class_="note")
