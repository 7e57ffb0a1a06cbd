"""Colours, markers and keys of the plots.

The colours are Okabe and Ito's, told apart by readers with any colour vision, and made lighter on
dark paper. Plots are drawn with the placeholders below; `inline_svg` puts the page's CSS variables
in their place, so that one drawing serves light and dark.
"""

from xml.etree import ElementTree

from keras_drill.report.elements import element

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

# Matplotlib's name of a marker, and its outline around (0, 0) for the key.
MARKERS = (
    ("o", "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z"),
    ("s", "M-3.5-3.5H3.5V3.5H-3.5Z"),
    ("^", "M0-4L4 3.5H-4Z"),
    ("D", "M0-4.5L4.5 0L0 4.5L-4.5 0Z"),
    ("v", "M0 4L4-3.5H-4Z"),
)


def series_color(index: int) -> str:
    """Placeholder colour of the run at `index`."""
    return SERIES[index % len(SERIES)]


def series_marker(index: int) -> str:
    """Matplotlib marker of the run at `index`; colour and marker together repeat after 30 runs."""
    return MARKERS[index % len(MARKERS)][0]


def series_key(index: int) -> ElementTree.Element:
    """The run's line and marker, to stand before its name outside the plots."""
    color = VARIABLES[series_color(index)]
    return element(
        "svg",
        element("path", d="M-12 0H12", style=f"stroke: {color}; stroke-width: 2"),
        element("path", d=MARKERS[index % len(MARKERS)][1], style=f"fill: {color}"),
        viewBox="-12 -6 24 12",
        class_="key",
        aria_hidden="true",
    )


def point_key(index: int | None) -> ElementTree.Element:
    """A run's marker without the line; an open grey circle for `None`."""
    color = "none" if index is None else VARIABLES[series_color(index)]
    outline = VARIABLES[MUTED] if index is None else color
    shape = MARKERS[0 if index is None else index % len(MARKERS)][1]
    return element(
        "svg",
        element("path", d=shape, style=f"fill: {color}; stroke: {outline}; stroke-width: 1.5"),
        viewBox="-6 -6 12 12",
        class_="key",
        aria_hidden="true",
    )
