"""Writes what was found into the documentation: a table of the rooms, and the survivors."""

import collections
import re
import sys
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome

from tests.mutation import fork, mutants
from tests.mutation.rooms import ROOMS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGE = "docs/about/mutation-testing.md"
_EQUIVALENTS = Path(__file__).with_name("equivalents.toml")
_BEGIN, _END = "<!-- results: begin -->", "<!-- results: end -->"


def write_report(project: Path, tree: Path, session: Path) -> None:
    """Prints the results of a session, and replaces those on the page."""
    text = _describe(tree, session)
    page = project / PAGE
    before, _, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    page.write_text(f"{before}{_BEGIN}\n\n{text}\n{_END}{after}", encoding="utf-8")
    print(text)


def _describe(tree: Path, session: Path) -> str:
    equivalents = read_equivalents()
    counts = {name: collections.Counter() for name in ROOMS}
    survivors = []
    with use_db(session, WorkDB.Mode.open) as database:
        results = [pair for pair in database.completed_work_items if pair[1].test_outcome]
        for item in database.work_items:
            counts[mutants.room_of(item)]["all"] += 1
    for item, result in results:
        count = counts[mutants.room_of(item)]
        count["tried"] += 1
        mutant = mutants.make_mutant(tree, item)
        if result.test_outcome == TestOutcome.KILLED:
            count["timed out" if result.output == fork.TIMED_OUT else "failed"] += 1
        elif mutant.key in equivalents:
            count["equivalent"] += 1
            survivors.append((mutant, equivalents[mutant.key]))
        else:
            count["survived"] += 1
            survivors.append((mutant, result.output))
    rows = [_row(name, count) for name, count in counts.items()]
    total = sum(counts.values(), collections.Counter())
    table = [
        "| part | mutants | tried | killed | by time-out | equivalent | survived | score |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        _row("all", total),
    ]
    lines = [*table, "", "Survivors, with the reason where a mutant is equivalent:", ""]
    for mutant, reason in sorted(survivors, key=lambda pair: (pair[0].file, pair[0].line)):
        lines.append(f"- `{mutant.file}`: {_code(mutant.before)} → {_code(mutant.after)}: {reason}")
    return "\n".join(lines) + "\n"


def _row(name: str, count: collections.Counter) -> str:
    killed = count["failed"] + count["timed out"]
    evaluated = killed + count["survived"]
    score = f"{100 * killed / evaluated:.0f} %" if evaluated else "-"
    cells = (count["all"], count["tried"], killed, count["timed out"], count["equivalent"])
    return f"| {name} | " + " | ".join(map(str, cells)) + f" | {count['survived']} | {score} |"


def _code(text: str) -> str:
    """A line of code as Markdown; of a long one the beginning."""
    text = re.sub(r"\s+", " ", text)
    return f"`{text if len(text) <= 100 else text[:97] + '...'}`"


def read_equivalents() -> dict[tuple[str, str, str], str]:
    """The mutants that no test can tell from the original, each with the reason."""
    listed = tomllib.loads(_EQUIVALENTS.read_text(encoding="utf-8"))["equivalent"]
    return {(one["file"], one["before"], one["after"]): one["reason"] for one in listed}
