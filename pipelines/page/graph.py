"""Drawing of a pipeline: its components, with lines from writers to readers of artifacts."""

from collections.abc import Sequence
from xml.etree import ElementTree

from keras_drill.workbench.report.page.elements import element
from pipelines.engine.execution import (
    FAILED,
    INTERRUPTED,
    KEPT,
    KILLED,
    MADE,
    RUNNING,
    STOPPED,
    Step,
)

_ROW, _TOP, _LEFT = 40, 22, 16
_FIRST_ARC, _ARC_STEP, _WIDTH = 208, 15, 340
_COLORS = {
    MADE: "var(--series-2)",
    KEPT: "var(--series-0)",
    RUNNING: "var(--series-4)",
    FAILED: "var(--warning)",
    STOPPED: "var(--warning)",
    INTERRUPTED: "var(--warning)",
    KILLED: "var(--warning)",
}
_WAITING = "var(--muted)"


def graph(steps: Sequence[Step]) -> ElementTree.Element:
    """Draws the components as SVG. Lines lead from a component to the readers of its artifact.

    Args:
        steps: The components, in order.
    """
    places = {step.writes: place for place, step in enumerate(steps)}
    arcs = [
        (places[name], reader)
        for reader, step in enumerate(steps)
        for name in step.reads
        if name in places
    ]
    parts = []
    last = dict(sorted(arcs, key=lambda arc: arc[1]))
    # Each artifact has its own lane. Short lanes are next to the components.
    lanes = sorted(last, key=lambda start: (last[start] - start, start))
    for start, end in arcs:
        parts += _arc(start, end, _FIRST_ARC + lanes.index(start) * _ARC_STEP)
    for place, step in enumerate(steps):
        parts += _node(place, step)
    width = max(_WIDTH, _FIRST_ARC + len(lanes) * _ARC_STEP)
    height = _TOP + _ROW * len(steps)
    words = "; ".join(
        f"{step.component}, {step.state}"
        + (f", reads {' and '.join(step.reads)}" if step.reads else "")
        for step in steps
    )
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_="graph",
        role="img",
        aria_label=f"The components: {words}",
    )


def state_mark(state: str) -> ElementTree.Element:
    """Makes the symbol of a state, to stand before text."""
    return element(
        "svg", *_mark(state, 0, 0), viewBox="-8 -8 16 16", class_="key", aria_hidden="true"
    )


def _node(place: int, step: Step) -> list[ElementTree.Element]:
    y = _TOP + place * _ROW
    return [
        *_mark(step.state, _LEFT, y),
        element("text", step.component, x=_LEFT + 18, y=y + 1, class_="name"),
        element("text", f"{step.state} → {step.writes}", x=_LEFT + 18, y=y + 15),
    ]


def _mark(state: str, x: int, y: int) -> list[ElementTree.Element]:
    """Makes a disc for a finished, a ring for an unfinished, a cross for a failed component."""
    color = _COLORS.get(state, _WAITING)
    if color == "var(--warning)":
        path = f"M{x - 5} {y - 5}L{x + 5} {y + 5}M{x + 5} {y - 5}L{x - 5} {y + 5}"
        return [element("path", d=path, style=f"stroke: {color}; stroke-width: 2.5")]
    fill = color if state in (MADE, KEPT) else "none"
    style = f"fill: {fill}; stroke: {color}; stroke-width: 2"
    return [element("circle", cx=x, cy=y, r=6, style=style)]


def _arc(start: int, end: int, lane: int) -> list[ElementTree.Element]:
    """Makes the line from a component to another one, along a lane on the right side."""
    y, to, x = _TOP + start * _ROW + 5, _TOP + end * _ROW - 5, _FIRST_ARC - 14
    path = f"M{x} {y}H{lane - 5}Q{lane} {y} {lane} {y + 5}V{to - 5}Q{lane} {to} {lane - 5} {to}H{x}"
    head = f"M{x} {to}l6 -3.5v7z"
    return [
        element("path", d=path, class_="line"),
        element("path", d=head, class_="head"),
    ]
