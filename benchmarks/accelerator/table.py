"""Converts the results of `python -m benchmarks.accelerator --json FILE` to Markdown.

    python -m benchmarks.accelerator.table FILE ... [--page PAGE]

With `--page`, the tables replace the text between the marks of that page. Otherwise they are
printed. The tables of several files follow one another.
"""

import argparse
import json
from itertools import groupby
from pathlib import Path

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
TITLES = {
    "loss": "Loss and gradients",
    "heads": "Output layers, loss and gradients in mixed bfloat16",
    "transformer": "Training steps of a Transformer",
    "awd-lstm": "Training steps of AWD-LSTM",
    "decoding": "Decoding",
}
COLUMNS = {
    "ms": ("ms", "{:.2f}"),
    "tflops": ("TFLOP/s", "{:.0f}"),
    "mib": ("MiB", "{:,.0f}"),
    "tokens_s": ("tokens/s", "{:,.0f}"),
    "over_tied": ("time over tied", "{:.2f}"),
    "over_operations": ("that over its operations", "{:.2f}"),
    "of_bandwidth": ("of the bandwidth", "{:.2f}"),
}


def describe(record: dict) -> str:
    """The record of a run as Markdown: where it ran, then a table for each part and case."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines = [f"`{record['command']}`: {record['device']}, {record['date']}. {versions}.", ""]
    for (part, case), rows in groupby(record["rows"], key=lambda row: (row["part"], row["case"])):
        lines += [f"{TITLES[part]}: {case}", "", *_table(list(rows)), ""]
    return "\n".join(lines)


def _table(rows: list[dict]) -> list[str]:
    columns = [key for key in COLUMNS if any(key in row for row in rows)]
    lines = [f"| | {' | '.join(COLUMNS[key][0] for key in columns)} | |"]
    lines.append(f"|---|{'--:|' * len(columns)}---|")
    for row in rows:
        cells = [COLUMNS[key][1].format(row[key]) if key in row else "" for key in columns]
        remark = f"left out: {row['skipped']}" if "skipped" in row else ""
        if "errors" in row and not any(cells):
            remark = f"errors {json.dumps(row['errors'])}"
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {remark.replace('|', '/')} |")
    return lines


def write_page(page: Path, text: str) -> None:
    """Replaces what is between the page's marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    if not begin or END not in rest:
        raise SystemExit(f"{page} must hold the marks {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--page", type=Path, help="a page of the documentation")
    arguments = parser.parse_args(argv)
    text = "\n".join(describe(json.loads(file.read_text())) for file in arguments.files)
    if arguments.page:
        write_page(arguments.page, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
