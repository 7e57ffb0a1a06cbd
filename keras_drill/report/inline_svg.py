"""Matplotlib figures as SVG elements of the page."""

import io
import re
from collections.abc import Callable
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_drill.report.elements import element
from keras_drill.report.palette import GRID, INK, MUTED, VARIABLES

# Width and height in inches. Text has the same size in both, so it stays legible on a phone.
SHAPES = {"wide": (7.4, 3.5), "narrow": (3.7, 3.6)}

_SETTINGS = {
    "svg.fonttype": "none",  # text stays text: selectable, in the reader's own font
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
}


def inline_svg(
    draw: Callable[[Figure, bool], Axes | None], prefix: str, label: str
) -> ElementTree.Element:
    """Draws a plot for wide and for narrow pages; the page's style shows the one that fits.

    Args:
        draw: Called with an empty figure and whether it is the narrow one.
        prefix: What the plots' ids begin with, unique on the page.
        label: The plot in words, for screen readers.
    """
    return element(
        "div",
        *(_render(draw, shape, size, f"{prefix}-{shape}", label) for shape, size in SHAPES.items()),
        class_="plot",
    )


def _render(draw, shape, size, prefix, label) -> ElementTree.Element:
    drawn = io.BytesIO()
    with matplotlib.rc_context():  # the reader's matplotlibrc must not change the page
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS | {"svg.hashsalt": prefix})
        figure = Figure(figsize=size, layout="constrained")
        draw(figure, shape == "narrow")
        figure.savefig(
            drawn, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    svg = ElementTree.fromstring(drawn.getvalue())
    _adapt_to_page(svg, prefix)
    for name in ("width", "height", "version"):
        del svg.attrib[name]
    svg.attrib |= {"class": shape, "role": "img", "aria-label": label}
    return svg


def _adapt_to_page(svg: ElementTree.Element, prefix: str) -> None:
    """Makes a stand-alone SVG document a part of an HTML page, in place."""
    for parent in svg.iter():
        for child in list(parent):
            # A style sheet inside the SVG would apply to the whole page.
            if child.tag.endswith("}style"):
                parent.remove(child)
    for part in svg.iter():
        part.text = part.text if part.text and part.text.strip() else None
        part.tail = None
        # HTML knows SVG's elements without their namespaces.
        part.tag = part.tag.rpartition("}")[2]
        for name, value in list(part.attrib.items()):
            del part.attrib[name]
            name = name.rpartition("}")[2]
            if name == "id":
                if part.tag == "g":  # nothing refers to groups
                    continue
                value = f"{prefix}-{value}"
            elif name == "href":
                value = value.replace("#", f"#{prefix}-")
            elif name == "clip-path":
                value = value.replace("url(#", f"url(#{prefix}-")
            elif name == "style":
                value = re.sub(r"#0101\d\d", lambda color: VARIABLES[color.group()], value)
                # The family is the page's; Matplotlib before 3.10 writes size and family as one.
                value = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", value)
                value = re.sub(r"font-family: [^;]*;? *", "", value)
            part.set(name, value)
