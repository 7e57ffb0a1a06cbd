"""Figures in the running text of pages, and where the files under `results/` hold them.

A results file may have a list `prose` of figures, each with `what` it is and a `value`. A value
that follows from the file's tables is a string with a formula: a difference, a quotient or exp.
"""

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

from docs.render_results import BLOCK, pages
from docs.results_data import RESULTS, load_results

_NUMBER = r"\d[\d,]*\.?\d*(?:e-?\d+)?|\.\d+"
_IN_PROSE = re.compile(r"(?<![\w.,-])(?:\d[\d,]*\.\d+(?:e-\d+)?|\d+e-\d+)(?![\w.]*\w)")
_VERSIONS = re.compile(r"Python [\d.]+( to [\d.]+)?")
_FORMULA = re.compile(r"(exp)?\(?(?P<a>[\d.]+)(?: (?P<by>[-/]) (?P<b>[\d.]+))?\)?")
_NOT_PROSE = re.compile(r"```.*?```|`[^`\n]*`|^ {4}.*?$|<[^>\n]*>|\]\([^)]*\)", re.M | re.S)


def find_unknown(page: str, overview: bool = False) -> list[str]:
    """Figures in the running text of a page that no results file holds.

    Args:
        page: Markdown.
        overview: Whether figures may come from any file, and not only from files of which the page
            shows a table, and from the literature.
    """
    shown = {match["name"].partition("/")[0] for match in BLOCK.finditer(page)}
    names = None if overview else shown | {"literature"}
    known = list(_known_figures(names))
    return [text for text in figures_in_prose(page) if not _is_rounded(text, known)]


def figures_in_prose(page: str) -> list[str]:
    """Numbers with a decimal point or exponent outside of code, tables from results and links.

    >>> figures_in_prose("It is 1.5 times as fast, to 2e-7. Take `0.1` with Python 3.10.")
    ['1.5', '2e-7']
    """
    text = _VERSIONS.sub("", _NOT_PROSE.sub("", BLOCK.sub("", page)))
    return _IN_PROSE.findall(text)


def evaluate_formula(formula: str, known: Iterable[float]) -> float:
    """The value of a formula whose numbers are known.

    >>> evaluate_formula("77.4 / 25.8", [25.8, 77.4])
    3.0

    Raises:
        ValueError: The formula is none, or a number is not known.
    """
    match = _FORMULA.fullmatch(formula)
    if match is None or not {float(n) for n in (match["a"], match["b"]) if n} <= set(known):
        raise ValueError(
            "a formula must be a difference, a quotient or exp of numbers that the file's tables "
            f"hold. Received: {formula!r}"
        )
    value = float(match["a"])
    if match["by"]:
        value = value - float(match["b"]) if match["by"] == "-" else value / float(match["b"])
    return math.exp(value) if match[1] else value


def _known_figures(names: set[str] | None) -> Iterator[float]:
    tables: dict[str, list[float]] = {}
    for page in pages():
        for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
            name = match["name"].partition("/")[0]
            numbers = re.findall(_NUMBER, match[0])
            tables.setdefault(name, []).extend(float(n.replace(",", "")) for n in numbers)
    for name in tables if names is None else names & set(tables):
        yield from tables[name]
        file: Path = RESULTS / f"{name}.json"
        if file.exists():
            for figure in load_results(name).get("prose", []):
                value = figure["value"]
                yield evaluate_formula(value, tables[name]) if isinstance(value, str) else value


def _is_rounded(text: str, known: Iterable[float]) -> bool:
    number = Decimal(text.replace(",", ""))
    half = Decimal(5).scaleb(int(number.as_tuple().exponent) - 1) * Decimal("1.000001")
    return any(abs(Decimal(repr(value)) - number) <= half for value in known)
