"""HTML as a tree: escaping and well-formed tags come from the serialiser."""

import re
from xml.etree import ElementTree

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def element(
    tag: str, *children: ElementTree.Element | str, **attributes: str | int
) -> ElementTree.Element:
    """An element with text and elements as children, in order.

    Args:
        tag: Name of the element.
        *children: Elements, or strings, shown as they are whatever they contain.
        **attributes: Attributes. A trailing underscore is dropped and the others become hyphens:
            `class_="wide"`, `aria_label="..."`.

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


def printable(text: str) -> str:
    """`text` without what a page cannot hold: control characters and lone surrogates."""
    shown = _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text)
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def table(
    caption: str,
    header: list[ElementTree.Element | str],
    rows: list[list[ElementTree.Element | str]],
    footer: list[ElementTree.Element | str] | None = None,
) -> ElementTree.Element:
    """A table whose first column names its rows, in a box that scrolls when it is too wide.

    Args:
        caption: What the table is, for screen readers.
        header: Names of the columns.
        rows: Rows of cells, as many as `header` has names.
        footer: A last row, set apart.
    """

    def row(cells: list[ElementTree.Element | str]) -> ElementTree.Element:
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
    # Reachable by keyboard, so that it can be scrolled without a mouse.
    return element(
        "div",
        element("table", *parts),
        class_="scroll",
        role="region",
        aria_label=caption,
        tabindex=0,
    )
