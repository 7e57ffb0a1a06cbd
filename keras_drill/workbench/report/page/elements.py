"""Makes HTML as a tree of elements. Texts are escaped when the tree is written."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from xml.etree import ElementTree

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Bidirectional classes of right-to-left characters and of characters that control directions.
_TURNING = {"R", "AL", "AN", "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def element(
    tag: str, *children: ElementTree.Element | str, **attributes: str | int
) -> ElementTree.Element:
    """Makes an element with text and elements as children, in order.

    Args:
        tag: Name of the element.
        *children: Elements or strings. Strings are escaped.
        **attributes: Attributes. A trailing underscore is dropped and other underscores become
            hyphens: `class_="wide"`, `aria_label="..."`.

    Example:

    >>> ElementTree.tostring(element("p", "a < b, ", element("b", "c"), class_="x"))
    b'<p class="x">a &lt; b, <b>c</b></p>'
    """
    made = ElementTree.Element(
        tag,
        {
            name.rstrip("_").replace("_", "-"): printable(str(value))
            for name, value in attributes.items()
        },
    )
    for child in children:
        if not isinstance(child, str):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + printable(child)
        else:
            made.text = (made.text or "") + printable(child)
    return made


def words(texts: Iterable[str], separator: str = " · ") -> ElementTree.Element:
    """Makes a list of texts, which keeps its order if texts are written from right to left.

    >>> ElementTree.tostring(words(["bank", "river"]), encoding="unicode")
    '<span class="list"><bdi>bank</bdi> · <bdi>river</bdi></span>'
    """
    parts: list[ElementTree.Element | str] = []
    for text in texts:
        parts += [separator, element("bdi", text)]
    return element("span", *parts[1:], class_="list")


def running_text(text: str) -> list[ElementTree.Element | str]:
    """Isolates the right-to-left parts of a text, so that they do not reorder the text around them.

    >>> [part if isinstance(part, str) else part.text for part in running_text("to שלום and to")]
    ['to ', 'שלום', ' and to']
    """
    parts: list[ElementTree.Element | str] = []
    for piece in re.split(r"(\s+)", text):
        if any(unicodedata.bidirectional(character) in _TURNING for character in piece):
            parts.append(element("bdi", piece))
        elif parts and isinstance(parts[-1], str):
            parts[-1] += piece
        else:
            parts.append(piece)
    return parts


def direction(text: str) -> str:
    """Returns the main writing direction of a text, for the attribute `dir`.

    >>> direction("שלום to you"), direction("כל שלום to")
    ('ltr', 'rtl')
    """
    classes = [unicodedata.bidirectional(character) for character in text]
    from_right = sum(name in ("R", "AL") for name in classes)
    return "rtl" if from_right > classes.count("L") else "ltr"


def printable(text: str) -> str:
    """Removes characters that HTML does not allow: control characters and lone surrogates."""
    shown = _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text)
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def table(
    caption: str,
    header: Sequence[ElementTree.Element | str],
    rows: Sequence[Sequence[ElementTree.Element | str]],
    footer: Sequence[ElementTree.Element | str] | None = None,
) -> ElementTree.Element:
    """Makes a table whose first column names the rows. A wide table scrolls in its box.

    Args:
        caption: Description of the table, for screen readers.
        header: Names of the columns.
        rows: Rows of cells. Each row has as many cells as `header`.
        footer: A last row, separated by a line.
    """

    def row(cells: Sequence[ElementTree.Element | str]) -> ElementTree.Element:
        first, *others = cells
        return element(
            "tr", element("th", first, scope="row"), *(element("td", cell) for cell in others)
        )

    parts = [
        element("caption", caption),
        element("thead", element("tr", *(element("th", name, scope="col") for name in header))),
        element("tbody", *map(row, rows)),
    ]
    if footer:
        parts.append(element("tfoot", row(footer)))
    # Focusable by keyboard, so that users without a mouse can scroll.
    return element(
        "div",
        element("table", *parts),
        class_="scroll",
        role="region",
        aria_label=caption,
        tabindex=0,
    )


def best_in_bold(
    values: Sequence[float | None], cells: Sequence[str], best: Callable[[list[float]], float]
) -> list[ElementTree.Element | str]:
    """Makes the cells of a column, with the best of several values in bold.

    Args:
        values: The numbers; `None` and numbers that are not finite are ignored.
        cells: The formatted numbers.
        best: `min` or `max`.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if len(finite) < 2:
        return list(cells)
    return [
        element("strong", cell) if value == best(finite) else cell
        for value, cell in zip(values, cells, strict=True)
    ]
