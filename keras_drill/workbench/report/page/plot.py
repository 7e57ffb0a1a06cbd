"""Plots as inline SVG in the page's colours, and legends.

The colours are those of Okabe and Ito, which readers with any colour vision can distinguish, and
lighter ones in dark mode. Plots use the placeholder colours below. `inline_svg` replaces these by
the CSS variables of the page, so that one plot works in light and dark mode.
"""

import io
import re
from collections.abc import Callable, Iterable
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from keras_drill.workbench.report.page.elements import element

INK = "#010101"
MUTED = "#010102"
GRID = "#010103"
PAPER = "#010104"
SERIES = ("#010111", "#010112", "#010113", "#010114", "#010115", "#010116")
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    **{color: f"var(--series-{index})" for index, color in enumerate(SERIES)},
}

# Matplotlib's name of a marker, and its outline around (0, 0) for the legend.
MARKERS = (
    ("o", "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z"),
    ("s", "M-3.5-3.5H3.5V3.5H-3.5Z"),
    ("^", "M0-4L4 3.5H-4Z"),
    ("D", "M0-4.5L4.5 0L0 4.5L-4.5 0Z"),
    ("v", "M0 4L4-3.5H-4Z"),
)


def series_color(index: int) -> str:
    """Returns the placeholder colour of the run at `index`."""
    return SERIES[index % len(SERIES)]


def series_marker(index: int) -> str:
    """Returns the Matplotlib marker of the run at `index`.

    The combinations of colour and marker repeat after 30 runs.
    """
    return MARKERS[index % len(MARKERS)][0]


def series_key(index: int) -> ElementTree.Element:
    """Makes the line with the marker of a run, to stand before the name of the run."""
    color = VARIABLES[series_color(index)]
    return _key(
        24,
        element("path", d="M-12 0H12", style=f"stroke: {color}; stroke-width: 2"),
        element("path", d=MARKERS[index % len(MARKERS)][1], style=f"fill: {color}"),
    )


def point_key(index: int | None) -> ElementTree.Element:
    """Makes the marker of a run without a line; `None` gives an open grey circle."""
    color = "none" if index is None else VARIABLES[series_color(index)]
    outline = VARIABLES[MUTED] if index is None else color
    shape = MARKERS[0 if index is None else index % len(MARKERS)][1]
    return _key(
        12, element("path", d=shape, style=f"fill: {color}; stroke: {outline}; stroke-width: 1.5")
    )


def line_key(dashed: bool = False) -> ElementTree.Element:
    """Makes a grey line for a legend."""
    dashes = "; stroke-dasharray: 5 3" if dashed else ""
    style = f"stroke: {VARIABLES[MUTED]}; stroke-width: 2{dashes}"
    return _key(24, element("path", d="M-12 0H12", style=style))


def ring_key() -> ElementTree.Element:
    """Makes a grey ring for a legend."""
    style = f"stroke: {VARIABLES[MUTED]}; stroke-width: 1.3"
    return _key(12, element("circle", r=5, style=style))


def _key(width: int, *shapes: ElementTree.Element) -> ElementTree.Element:
    view = f"{-width // 2} -6 {width} 12"
    return element("svg", *shapes, viewBox=view, class_="key", aria_hidden="true")


def keys(
    *named: tuple[ElementTree.Element, ElementTree.Element | str],
) -> ElementTree.Element:
    """Makes the legend above a plot, a list of keys and names."""
    return element("ul", *(element("li", key, name) for key, name in named), class_="keys")


def run_keys(runs: Iterable[tuple[int, str]]) -> ElementTree.Element:
    """Makes the legend of runs above a plot, from the positions and names of the runs."""
    return keys(*((series_key(index), element("bdi", name)) for index, name in runs))


def run_name(index: int, name: str, output_layer: str = "") -> ElementTree.Element:
    """Makes the first cell of a row: legend key and name of a run, above its output layer."""
    text = element("span", element("bdi", name))
    if output_layer:
        text.append(element("small", output_layer, dir="auto"))
    return element("div", series_key(index), text, class_="run")


# Width and height in inches. Text has the same size in both, so it stays legible on a phone.
SHAPES = {"wide": (7.4, 3.5), "narrow": (3.7, 3.6)}

_SETTINGS = {
    "svg.fonttype": "none",  # keep text as text: selectable, in the reader's font
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
    """Draws a plot twice, for wide and for narrow pages. The style sheet shows the one that fits.

    Args:
        draw: Function that draws the plot. Its arguments are an empty figure, and whether the
            figure is for narrow pages.
        prefix: Prefix of the ids in the plots, unique on the page.
        label: Description of the plot, for screen readers.
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
        # `savefig` would draw the figure twice, once only for the layout.
        FigureCanvasSVG(figure).print_svg(
            drawn, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    svg = ElementTree.fromstring(drawn.getvalue())
    _adapt_to_page(svg, prefix)
    for name in ("width", "height", "version"):
        del svg.attrib[name]
    svg.attrib |= {"class": shape, "role": "img", "aria-label": label}
    return svg


def _adapt_to_page(svg: ElementTree.Element, prefix: str) -> None:
    """Changes a stand-alone SVG document in place, so that an HTML page can contain it."""
    for parent in svg.iter():
        for child in list(parent):
            # A style sheet inside the SVG would apply to the whole page.
            if child.tag.endswith("}style"):
                parent.remove(child)
    for part in svg.iter():
        part.text = part.text if part.text and part.text.strip() else None
        part.tail = None
        # HTML has the elements of SVG without namespaces.
        part.tag = part.tag.rpartition("}")[2]
        for name, value in list(part.attrib.items()):
            del part.attrib[name]
            name = name.rpartition("}")[2]
            if name == "id":
                if part.tag == "g":  # no element refers to the ids of groups
                    continue
                value = f"{prefix}-{value}"
            elif name == "href":
                value = value.replace("#", f"#{prefix}-")
            elif name == "clip-path":
                value = value.replace("url(#", f"url(#{prefix}-")
            elif name == "style":
                value = re.sub(r"#0101\d\d", lambda color: VARIABLES[color.group()], value)
                # Use the font family of the page. Matplotlib before 3.10 writes size and family
                # together.
                value = re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", value)
                value = re.sub(r"font-family: [^;]*;? *", "", value)
            part.set(name, value)
