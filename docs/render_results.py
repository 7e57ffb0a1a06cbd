"""Writes the tables of the pages and the charts from the files under `results/`.

    python -m docs.render_results

Tables stand between `<!-- results: FILE/TABLE begin -->` and `<!-- results: FILE/TABLE end -->`.
`--check` writes nothing and fails where a page or a chart is out of date.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from docs.draw_results import CHARTS
from docs.results_data import ROOT
from docs.results_tables import make_table

PICTURES = ROOT / "docs" / "pictures"
BLOCK = re.compile(
    r"(<!-- results: (?P<name>[\w/-]+) begin -->\n).*?(<!-- results: (?P=name) end -->)", re.S
)


def pages() -> Iterator[Path]:
    """The Markdown files that may have tables from `results/`."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("**/*.md"))


def render_page(text: str) -> str:
    """A page with its tables as the files have them."""
    return BLOCK.sub(lambda m: f"{m[1]}{make_table(m['name'])}\n{m[3]}", text)


def outdated() -> dict[Path, str]:
    """Files that differ from what the results make of them, with what they should be."""
    due = {page: render_page(page.read_text(encoding="utf-8")) for page in pages()}
    due |= {PICTURES / f"{name}.svg": draw() for name, draw in CHARTS.items()}
    return {
        path: text
        for path, text in due.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    args = parser.parse_args()
    due = outdated()
    for path, text in due.items():
        if args.check:
            print(f"{path.relative_to(ROOT)} is out of date: python -m docs.render_results")
        else:
            path.write_text(text, encoding="utf-8")
    return int(args.check and bool(due))


if __name__ == "__main__":
    sys.exit(main())
