"""Charts as SVG: the same bytes from the same numbers, readable on light and on dark pages."""

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH = 640
_FONT = 14
_COLOURS = ("#8b95a1", "#2f6fdb", "#0e9f6e", "#c2571a", "#8e4ec6", "#b8860b", "#c0392b")
_STYLE = """
svg{font:%dpx system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.paper{fill:#fff}text{fill:#1f2933}.soft{fill:#5b6673}.grid{stroke:#d5dae0}
@media(prefers-color-scheme:dark){.paper{fill:#16191d}text{fill:#e6eaef}.soft{fill:#a5aeb8}.grid{stroke:#3a424c}}
"""

Panel = tuple[str, Mapping[str, Mapping[str, float]]]


def bars(panels: Sequence[Panel]) -> str:
    """Horizontal bars, one panel below the other.

    Args:
        panels: Titles, each with its groups: `{group: {series: value}}`.
    """
    names = list(dict.fromkeys(name for _, groups in panels for g in groups.values() for name in g))
    colours = dict(zip(names, _COLOURS, strict=False))
    left = 26 + 8 * max(len(group) for _, groups in panels for group in groups)
    right = _WIDTH - 84
    parts, y = _legend(names, colours)
    for title, groups in panels:
        y += 26
        parts.append(f'<text x="12" y="{y}" font-weight="600">{escape(title)}</text>')
        y += 10
        top = max(value for series in groups.values() for value in series.values())
        for group, series in groups.items():
            middle = y + 11 * len(series) + 5
            parts.append(f'<text x="12" y="{middle:g}" class="soft">{escape(group)}</text>')
            for name, value in series.items():
                width = (right - left) * value / top
                parts.append(
                    f'<rect x="{left:.1f}" y="{y + 3}" width="{width:.1f}" height="17" rx="2" '
                    f'fill="{colours[name]}"/><text x="{left + width + 6:.1f}" y="{y + 16}">'
                    f"{_number(value)}</text>"
                )
                y += 22
            y += 6
    return document(parts, y + 8)


def lines(
    title: str,
    x_label: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    y_label: str = "",
) -> str:
    """Lines through points `(x, y)`, one for each series."""
    colours = dict(zip(series, _COLOURS, strict=False))
    parts, y = _legend(list(series), colours)
    parts.append(f'<text x="12" y="{y + 26}" font-weight="600">{escape(title)}</text>')
    left, right, top, bottom = 56, _WIDTH - 20, y + 64, y + 304
    xs, ys = zip(*(point for points in series.values() for point in points), strict=True)
    x_ticks, y_ticks = _ticks(min(xs), max(xs)), _ticks(min(ys), max(ys))
    low, high = min(y_ticks[0], min(ys)), max(y_ticks[-1], max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            left + (right - left) * (x - min(xs)) / (max(xs) - min(xs)),
            bottom - (bottom - top) * (y - low) / (high - low),
        )

    for tick in y_ticks:
        at = place(min(xs), tick)[1]
        parts.append(
            f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>'
            f'<text x="{left - 8}" y="{at + 5:.1f}" text-anchor="end" class="soft">{tick:g}</text>'
        )
    for tick in x_ticks:
        at = place(tick, low)[0]
        parts.append(
            f'<text x="{at:.1f}" y="{bottom + 20}" text-anchor="middle" class="soft">'
            f"{tick:g}</text>"
        )
    for name, points in series.items():
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2.5"/>'
        )
    parts.append(
        f'<text x="{(left + right) / 2:g}" y="{bottom + 42}" text-anchor="middle">'
        f'{escape(x_label)}</text><text x="12" y="{top - 18}" class="soft">{escape(y_label)}</text>'
    )
    return document(parts, bottom + 56)


def label(x: float, y: float, text: str, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}"{weight}>{escape(text)}</text>'


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    opacity: float = 1.0,
    dashed: bool = False,
) -> str:
    edge = ' stroke="#8b95a1" stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" '
        f'fill="{fill}" fill-opacity="{opacity:g}"{edge}/>'
    )


def _legend(names: Sequence[str], colours: Mapping[str, str]) -> tuple[list[str], int]:
    parts, x, y = [], 12.0, 12
    for name in names:
        width = 34 + 7.6 * len(name)
        if x > 12 and x + width > _WIDTH:
            x, y = 12.0, y + 22
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="14" height="14" rx="2" fill="{colours[name]}"/>'
            f'<text x="{x + 20:.1f}" y="{y + 12}">{escape(name)}</text>'
        )
        x += width
    return parts, y + 14


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers within a range, four to eight of them.

    >>> _ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    power = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(m * power for m in (5, 2, 1) if (high - low) / (m * power) >= 3.9)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _number(value: float) -> str:
    """
    >>> _number(2196.66), _number(312), _number(42.2238), _number(0.123)
    ('2,197', '312', '42.2', '0.12')
    """
    if value >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def document(parts: Sequence[str], height: float) -> str:
    """The SVG of some parts, on paper."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
        f'width="{_WIDTH}" height="{height:g}"><style>{_STYLE % _FONT}</style>'
        f'<rect class="paper" width="{_WIDTH}" height="{height:g}" rx="6"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
