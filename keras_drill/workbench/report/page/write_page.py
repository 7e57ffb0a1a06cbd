"""Writes a self-contained HTML page with sections."""

import os
import pathlib
from collections.abc import Sequence
from xml.etree import ElementTree

from keras_drill.data.atomic import replace_file
from keras_drill.workbench.report.page.elements import element
from keras_drill.workbench.report.page.style import STYLE

# Even a modified page can neither load nor run anything.
_NOTHING_FROM_OUTSIDE = "default-src 'none'; style-src 'unsafe-inline'"


def write_page(
    path: str | os.PathLike,
    title: str,
    summary: Sequence[ElementTree.Element | str],
    sections: Sequence[ElementTree.Element],
) -> pathlib.Path:
    """Writes one HTML page and returns its path.

    The page needs neither a network nor JavaScript: plots are inline SVG, and fonts are system
    fonts. The function writes to a temporary file and renames it, so that `path` never
    contains an incomplete page.

    Args:
        path: The HTML file. An existing file is replaced.
        title: Title of the page.
        summary: One sentence under the title, in parts. Parts that may be written from right to
            left, such as the name of a run, must be separate elements.
        sections: The page's sections, in order.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_NOTHING_FROM_OUTSIDE),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", STYLE),
    )
    header = element(
        "header",
        element("h1", title, dir="auto"),
        element("p", *summary, class_="summary"),
    )
    page = element("html", head, element("body", header, element("main", *sections)), lang="en")
    text = ElementTree.tostring(page, encoding="unicode", method="html")
    replace_file(path, f"<!DOCTYPE html>\n{text}")
    return pathlib.Path(path)
