"""Draws the rooms of the package and the imports between them, into ARCHITECTURE.md.

    python -m docs.draw_architecture

An arrow means "imports". Arrows that follow from others are left out. `--check` writes nothing and
fails where the drawing is out of date.
"""

import argparse
import itertools
import re
import sys
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "ARCHITECTURE.md"
_MARKS = re.compile("(<!-- drawing: begin -->\n).*?(<!-- drawing: end -->)", re.S)
_NO_ROOMS = {"keras_drill.api", "keras_drill.types", "keras_drill.__main__"}


def find_arrows() -> list[tuple[str, str]]:
    """Pairs of an importing and an imported room, without those that follow from others."""
    graph = grimp.build_graph(
        "keras_drill", "pipelines", exclude_type_checking_imports=True, cache_dir=None
    )
    # Public names, looked up when they are used; the contract in pyproject.toml ignores them, too.
    for imported in graph.find_modules_directly_imported_by("keras_drill.ops"):
        if imported.startswith("keras_drill.fused_loss."):
            graph.remove_import(importer="keras_drill.ops", imported=imported)
    rooms = sorted(graph.find_children("keras_drill") - _NO_ROOMS) + ["pipelines"]
    arrows = [
        (importer, imported)
        for importer, imported in itertools.permutations(rooms, 2)
        if graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)
    ]
    return [arrow for arrow in arrows if not _follows(arrow, arrows)]


def _follows(arrow: tuple[str, str], arrows: list[tuple[str, str]]) -> bool:
    """Whether an arrow's end is reached from its start by the other arrows."""
    start, end = arrow
    found, waiting = set(), [b for a, b in arrows if a == start and b != end]
    while waiting:
        room = waiting.pop()
        if room not in found:
            found.add(room)
            waiting += [b for a, b in arrows if a == room]
    return end in found


def draw(arrows: list[tuple[str, str]]) -> str:
    """A Mermaid drawing.

    >>> print(draw([("keras_drill.models", "keras_drill.layers")]))
    ```mermaid
    flowchart TD
        models --> layers
    ```
    """
    lines = [f"    {a.split('.')[-1]} --> {b.split('.')[-1]}" for a, b in sorted(arrows)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    args = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    drawn = _MARKS.sub(rf"\g<1>{draw(find_arrows())}\n\g<2>", page)
    if args.check:
        if drawn != page:
            print("ARCHITECTURE.md is out of date: python -m docs.draw_architecture")
        return int(drawn != page)
    PAGE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
