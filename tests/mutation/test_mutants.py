"""The mutants of small pieces of code. Needs cosmic-ray, which `make test-mutation` installs."""

import json

import pytest

pytest.importorskip("cosmic_ray")

from tests.mutation import mutants
from tests.mutation.measure import Coverage, digest_of
from tests.mutation.report import read_equivalents
from tests.mutation.rooms import OF_DEFINITIONS
from tests.mutation.tree import mutated


def all_mutants(folder, source):
    """The changed lines of all mutants of a module, by operator."""
    (folder / "module.py").write_text(source)
    found = {}
    for item in mutants.list_module(folder, folder / "module.py"):
        mutant = mutants.make_mutant(folder, item)
        if mutant is not None:
            found.setdefault(item.mutations[0].operator_name, []).append(mutant.after)
    return found


@pytest.mark.parametrize(
    ("operator", "line", "expected"),
    [
        ("ConstantCondition", "if x: y", ["if False: y", "if True: y"]),
        ("RemoveStatement", "x += 1", ["pass"]),
        ("RemoveStatement", "x.append(1)", ["pass"]),
        ("UnwrapCall", "y = ops.stop_gradient(x) + 1", ["y = (x) + 1"]),
        ("DropKeyword", "y = f(x, axis=1, out=z)", ["y = f(x, out=z)", "y = f(x, axis=1)"]),
        ("SwapArguments", "y = where(a, b, c)", ["y = where(b, a, c)", "y = where(a, c, b)"]),
        ("DropOperand", "y = a * weight", ["y = a", "y = weight"]),
        ("ReplaceComparisonOperator_Lt_LtE", "y = a < b", ["y = a <= b"]),
    ],
)  # fmt: skip
def test_operators_make_mistakes(operator, line, expected, tmp_path):
    assert all_mutants(tmp_path, f"{line}\n")[operator] == expected


@pytest.mark.parametrize(
    "source",
    [
        "def f(x: 'A | B') -> 'A | B': pass\n",
        'raise ValueError(f"Expected {n + 1}")\n',
        'x = warnings.warn(f"{n + 1}", stacklevel=2)\n',
        "assert n + 1\n",
        'message = f"there are {n + 1}"\n',
        "x = f(encoding=a)\n",
    ],
)
def test_hints_and_messages_are_left_alone(source, tmp_path):
    assert all_mutants(tmp_path, source) == {}


def test_tests_of_the_line_come_first_and_uncovered_lines_get_those_of_the_module(tmp_path):
    (tmp_path / "m.py").write_text("a\nb\nc\n")
    record = {
        "modules": {"m.py": digest_of(tmp_path / "m.py")},
        "tests": [["t.py::a", 3.0], ["t.py::b", 1.0], ["t.py::c", 2.0], ["t.py::d", 50.0]],
        "lines": {"m.py": {"1": [0], "2": [0, 2], "3": []}},
    }
    (tmp_path / "t.json").write_text(json.dumps(record))
    coverage = Coverage([tmp_path / "t.json"], tmp_path)
    chosen = coverage.select_tests("m.py", range(2, 3), 20.0)
    assert chosen.tests == ["t.py::c", "t.py::a", "t.py::b"] and chosen.is_covered
    chosen = coverage.select_tests("m.py", range(3, 4), 2.5)
    assert chosen.tests == [*OF_DEFINITIONS, "t.py::c"] and not chosen.is_covered
    assert coverage.select_tests("other.py", range(9), 20.0).tests == [*OF_DEFINITIONS]
    (tmp_path / "m.py").write_text("new\na\nb\nc\n")  # lines are others now
    coverage = Coverage([tmp_path / "t.json"], tmp_path)
    chosen = coverage.select_tests("m.py", range(9, 10), 20.0)
    assert chosen.tests == ["t.py::c", "t.py::a", "t.py::b"]


def test_what_runs_when_a_module_is_imported(tmp_path):
    lines = ["A = 1", "class B:", "    c = (", "        2)"]
    lines += ["    @f", "    def d(self,", "          e=3):", "        return e"]
    (tmp_path / "m.py").write_text("\n".join(lines))
    assert mutants.statements_by_line(tmp_path / "m.py") == {
        1: (1, 1, True),
        2: (2, 2, True),
        3: (3, 4, True),
        4: (3, 4, True),
        5: (5, 7, True),
        6: (5, 7, True),
        7: (5, 7, True),
        8: (8, 8, False),
    }


def test_a_file_is_what_it_was_after_it_was_mutated(tmp_path):
    (tmp_path / "m.py").write_text("x = 1\n")
    before = (tmp_path / "m.py").stat().st_mtime_ns
    with mutated(tmp_path, "m.py", "x = 2\n"):
        assert (tmp_path / "m.py").read_text() == "x = 2\n"
    assert (tmp_path / "m.py").read_text() == "x = 1\n"
    assert (tmp_path / "m.py").stat().st_mtime_ns == before


def test_equivalents_have_reasons():
    assert all(read_equivalents().values())
