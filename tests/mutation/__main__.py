"""Mutation testing: mutants of the rooms, each tried by the tests that run its line.

    make test-mutation MUTANTS=200 SEED=1

All that is made lies in `build/mutation`. A run that was stopped goes on where it was.
"""

import argparse
import os
import shutil
import time
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tests.mutation import fork, mutants
from tests.mutation.measure import Coverage, measure
from tests.mutation.report import write_report
from tests.mutation.rooms import ROOMS
from tests.mutation.tree import copy_project, mutated

_PROJECT = Path(__file__).parents[2]
_FOLDER = _PROJECT / "build/mutation"
_TREE = _FOLDER / "tree"
_SESSION = _FOLDER / "session.sqlite"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make test-mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=200, help="how many, over all rooms")
    parser.add_argument("--seed", type=int, default=1, help="draws the mutants")
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS, metavar="ROOM")
    parser.add_argument("--seconds", type=float, default=60, help="of tests per mutant")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--retry", action="store_true", help="try the survivors again")
    parser.add_argument("--report", action="store_true", help="only write the page's tables")
    given = parser.parse_args()
    if given.report:
        write_report(_PROJECT, _TREE, _SESSION)
        return
    os.nice(19 - os.nice(0))
    if given.fresh:
        shutil.rmtree(_FOLDER, ignore_errors=True)
    _update_tree()
    with use_db(_SESSION, WorkDB.Mode.create) as session:
        if not session.num_work_items:
            session.add_work_items(mutants.list_work_items(_TREE))
        print(f"{session.num_work_items} mutants in all, {session.num_results} tried before")
        _try_mutants(session, given)
    write_report(_PROJECT, _TREE, _SESSION)


def _update_tree() -> None:
    """Copies the project; the sources only at first: a session is about one state of them."""
    if not _SESSION.exists():
        copy_project(_PROJECT, _TREE)
        return
    sources = {
        path: path.read_bytes() for room in ROOMS.values() for path in room.list_modules(_TREE)
    }
    changed = copy_project(_PROJECT, _TREE)
    for path, code in sources.items():
        if not path.exists() or path.read_bytes() != code:
            path.write_bytes(code)
    names = {path.relative_to(_TREE).as_posix() for path in sources}
    if names & set(changed):
        print("Sources have changed; this goes on with the old ones. FRESH=1 begins again.")


def _try_mutants(session: WorkDB, given: argparse.Namespace) -> None:
    items = {item.job_id: item for item in session.work_items}
    done = dict(session.results)
    wanted = [
        item
        for item in mutants.order_by_seed(list(items.values()), given.seed)
        if mutants.room_of(item) in given.rooms
    ][: given.mutants]
    wanted = [
        item
        for item in wanted
        if item.job_id not in done
        or (given.retry and done[item.job_id].test_outcome == TestOutcome.SURVIVED)
    ]
    if not wanted:
        return
    fork.import_libraries()
    paths = dict.fromkeys(path for name in given.rooms for path in ROOMS[name].list_tests(_TREE))
    for number, path in enumerate(paths, 1):
        begun = time.monotonic()
        measure(_TREE, path, _FOLDER / "coverage")
        if (seconds := time.monotonic() - begun) > 1:
            print(f"measured {number}/{len(paths)} {path}: {seconds:.0f} s", flush=True)
    coverage = Coverage(sorted((_FOLDER / "coverage").glob("*.json")), _TREE)
    for number, item in enumerate(wanted, 1):
        begun = time.monotonic()
        result = _try_mutant(coverage, item, given.seconds)
        session.set_result(item.job_id, result)
        diff = " ".join(filter(None, [result.diff]))
        print(
            f"{number}/{len(wanted)} {time.monotonic() - begun:.0f} s "
            f"{result.test_outcome.value if result.test_outcome else 'no mutant'}: {diff}",
            flush=True,
        )


def _try_mutant(coverage: Coverage, item: WorkItem, most_seconds: float) -> WorkResult:
    mutant = mutants.make_mutant(_TREE, item)
    if mutant is None:
        return WorkResult(WorkerOutcome.SKIPPED)
    alone = mutants.Statement(mutant.line, mutant.line, False)  # such as `except ...:`
    statement = mutants.statements_by_line(_TREE / mutant.file).get(mutant.line, alone)
    # Coverage names the test that happened to import a module first, which says nothing.
    lines = range(0) if statement.runs_at_import else range(statement.first, statement.last + 1)
    selected = coverage.select_tests(mutant.file, lines, most_seconds)
    diff = f"{mutant.file}:{mutant.line}\n-{mutant.before}\n+{mutant.after}"
    log = _FOLDER / "logs" / f"{item.job_id}.log"
    log.parent.mkdir(exist_ok=True)
    with mutated(_TREE, mutant.file, mutant.code):
        status = fork.run_pytest(_TREE, ["-x", *selected.tests], log, 30 + 4 * selected.seconds)
    if status == 0:
        output = (
            "survived" if selected.is_covered else "survived; the line is run at import or nowhere"
        )
        return WorkResult(WorkerOutcome.NORMAL, output, TestOutcome.SURVIVED, diff)
    output = status if status == fork.TIMED_OUT else _last_lines(log)
    return WorkResult(WorkerOutcome.NORMAL, output, TestOutcome.KILLED, diff)


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-4:])


if __name__ == "__main__":
    main()
