"""Formats numbers for pages, and tables for the terminal."""

import math
from collections.abc import Sequence

MISSING = "–"


def format_count(value: int | None) -> str:
    """Formats a whole number with thousands separators.

    >>> format_count(24221600), format_count(None)
    ('24,221,600', '–')
    """
    return MISSING if value is None else f"{value:,}"


def format_perplexity(value: float | None) -> str:
    """Formats a perplexity with its significant digits.

    >>> format_perplexity(65.8123), format_perplexity(23456.7), format_perplexity(math.inf)
    ('65.81', '23,457', '∞')
    """
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞"
    if value >= 1e7:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def format_significant(value: float) -> str:
    """Formats a number of any magnitude with three significant digits.

    >>> format_significant(0.00125), format_significant(31.25), format_significant(math.nan)
    ('0.00125', '31.2', 'NaN')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return f"{value:.3g}".replace("-", "−")


def format_duration(seconds: float | None) -> str:
    """Formats a duration in a suitable unit.

    >>> format_duration(0.25), format_duration(12.34), format_duration(125), format_duration(7260)
    ('0.25 s', '12.3 s', '2 min 05 s', '2 h 01 min')
    """
    if seconds is None:
        return MISSING
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_nats(value: float, signed: bool = False) -> str:
    """Formats a cross-entropy, or a difference of two cross-entropies.

    >>> format_nats(6.50612), format_nats(-0.02, signed=True), format_nats(math.nan)
    ('6.506', '−0.020', '–')
    """
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:{'+' if signed else ''}.3f}".replace("-", "−")


def text_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Formats rows of cells as lines with aligned columns.

    Args:
        rows: The rows, including the header, of equal length.
        left: Number of columns at the left that are left-aligned. Others are right-aligned.

    Example:

    >>> print(text_table([("word", "senses"), ("bank", "3")]))
    word  senses
    bank       3
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
