"""The mutants of the rooms, and the order in which a seed draws them."""

import ast
import dataclasses
import functools
import hashlib
import random
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_item import MutationSpec, WorkItem

from tests.mutation import operators
from tests.mutation.rooms import ROOMS


@dataclasses.dataclass(frozen=True)
class Mutant:
    """What one mutation changes.

    Attributes:
        file: Path of the module inside the project.
        line: Number of the first line that differs.
        before: The lines that are replaced, without their indentation.
        after: The lines that replace them.
        code: The source of the whole module.
    """

    file: str
    line: int
    before: str
    after: str
    code: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Names the mutant, wherever in its module its line is."""
        return self.file, self.before, self.after


def list_work_items(tree: Path) -> list[WorkItem]:
    """All mutants of all rooms, named by a digest of what they are."""
    items = []
    for room in ROOMS.values():
        for path in room.list_modules(tree):
            items.extend(list_module(tree, path))
    return items


def list_module(tree: Path, path: Path) -> list[WorkItem]:
    """All mutants of a module."""
    module = path.relative_to(tree)
    nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
    items = []
    for name in operators.operator_names():
        operator = operators.operator_named(name)
        places = ((node, at) for node in nodes for at in operator.mutation_positions(node))
        for occurrence, (node, (start, end)) in enumerate(places):
            if not operators.is_mutated(node) or end <= start:
                continue
            job = hashlib.sha256(f"{module} {name} {occurrence}".encode()).hexdigest()[:16]
            mutation = MutationSpec(module, name, occurrence, start, end)
            items.append(WorkItem.single(job, mutation))
    return items


def order_by_seed(items: list[WorkItem], seed: int) -> list[WorkItem]:
    """Shuffles the mutants of each room and takes one of each room in turn."""
    by_room: dict[str, list[WorkItem]] = {name: [] for name in ROOMS}
    for item in sorted(items, key=lambda item: item.job_id):
        by_room[room_of(item)].append(item)
    for name, some in by_room.items():
        random.Random(f"{seed} {name}").shuffle(some)
    turns = max(map(len, by_room.values()))
    return [some[turn] for turn in range(turns) for some in by_room.values() if turn < len(some)]


def room_of(item: WorkItem) -> str:
    """The room of a mutant's module."""
    module = item.mutations[0].module_path.as_posix()
    return next(name for name, room in ROOMS.items() if room.holds(module))


def make_mutant(tree: Path, item: WorkItem) -> Mutant | None:
    """The mutant, or `None` where the mutation changes nothing or makes no valid Python."""
    (mutation,) = item.mutations
    source = (tree / mutation.module_path).read_text(encoding="utf-8")
    operator = operators.operator_named(mutation.operator_name)
    code = mutate_code(source, operator, mutation.occurrence)
    if code is None or code == source:
        return None
    try:
        compile(code, str(mutation.module_path), "exec")
    except SyntaxError:
        return None
    return _compare(mutation.module_path.as_posix(), source, code)


def _compare(file: str, source: str, code: str) -> Mutant:
    old, new = source.splitlines(), code.splitlines()
    first = next(
        (place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
        min(len(old), len(new)),
    )
    most = min(len(old), len(new)) - first
    last = next((n for n in range(most) if old[len(old) - 1 - n] != new[len(new) - 1 - n]), most)
    return Mutant(
        file,
        first + 1,
        _joined(old[first : len(old) - last]),
        _joined(new[first : len(new) - last]),
        code,
    )


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


@functools.cache
class Statement(NamedTuple):
    """The first and the last line of a statement, and whether it runs when a module is imported."""

    first: int
    last: int
    runs_at_import: bool


def statements_by_line(path: Path) -> dict[int, Statement]:
    """For each line of a module, its innermost statement; of a definition, only the header."""
    lines: dict[int, Statement] = {}

    def add(node: ast.AST, runs_at_import: bool) -> None:
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
            first = min(x.lineno for x in (node, *getattr(node, "decorator_list", [])))
            statement = Statement(first, max(end, node.lineno), runs_at_import)
            lines.update(dict.fromkeys(range(statement.first, statement.last + 1), statement))
            runs_at_import &= not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for child in ast.iter_child_nodes(node):
            add(child, runs_at_import)

    add(ast.parse(path.read_text(encoding="utf-8")), True)
    return lines
