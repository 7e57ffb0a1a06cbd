"""Tables on the terminal."""

from collections.abc import Sequence


def text_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of cells as lines with aligned columns.

    Args:
        rows: The rows, the header among them, of equal lengths.
        left: How many columns, from the first, are aligned to the left; the others to the right.

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
