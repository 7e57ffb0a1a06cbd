"""The files under `results/`, and Markdown tables of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"


def load_results(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def load_table(name: str) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of a table of a file, `FILE/TABLE`."""
    file, _, table = name.partition("/")
    found = load_results(file)["tables"][table]
    return found["columns"], found["rows"]


def write_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table. A pair is a mean and half the width of its 95 % interval.

    >>> print(write_table(["text", "tied"], [["a", [105.0, 1.0]], ["b", 1333.25], ["c", None]]))
    | text | tied |
    |---|--:|
    | a | 105.00 ± 1.00 |
    | b | 1,333.25 |
    | c | |
    """
    cells = [_format_column([row[place] for row in rows]) for place in range(len(columns))]
    numeric = [
        any(isinstance(row[place], int | float | list) for row in rows)
        for place in range(len(columns))
    ]
    head = [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join("--:" if n else "---" for n in numeric) + "|",
    ]
    body = ["| " + " | ".join(row) + " |" for row in zip(*cells, strict=True)]
    return "\n".join([*head, *body]).replace("|  |", "| |").replace("|  |", "| |")


def _format_column(values: Sequence[Any]) -> list[str]:
    numbers = [n for v in values for n in (v if isinstance(v, list) else [v])]
    digits = max((_decimals(n) for n in numbers if isinstance(n, float)), default=0)

    def text(value: Any) -> str:
        if isinstance(value, list):
            return f"{text(value[0])} ± {text(value[1])}"
        if isinstance(value, float):
            return f"{value:,.{digits}f}"
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    return [text(value) for value in values]


def _decimals(value: float) -> int:
    return len(repr(value).partition(".")[2]) if value >= 1e-3 or value <= 0 else 0
