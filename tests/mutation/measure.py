"""Which test runs which line, and how long each test takes."""

import collections
import dataclasses
import hashlib
import json
import random
from pathlib import Path

from tests.mutation import fork
from tests.mutation.rooms import OF_DEFINITIONS

_MOST_CASES = 6  # of one parametrized test
_SECONDS_OF_ONE_FILE = 900


class _Recorder:
    """A plugin of pytest that measures coverage per test, by one file of tests."""

    def __init__(self, tree: Path, result: Path):
        import coverage

        self._tree = tree
        self._result = result
        self._seconds: dict[str, float] = collections.defaultdict(float)
        self._failed: set[str] = set()
        self._coverage = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[f"{tree}/keras_drill/*", f"{tree}/pipelines/*"],
            messages=False,
        )
        self._coverage.start()

    def pytest_runtest_setup(self, item):
        self._coverage.switch_context("setup")

    def pytest_runtest_call(self, item):
        self._coverage.switch_context(item.nodeid)

    def pytest_runtest_teardown(self, item):
        self._coverage.switch_context("setup")

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self._seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def finish(self):
        self._coverage.stop()
        data = self._coverage.get_data()
        tests = sorted(set(self._seconds) - self._failed)
        numbers = {name: place for place, name in enumerate(tests)}
        # What fixtures run serves all tests of the file.
        numbers["setup"] = -1
        lines = {
            str(Path(file).relative_to(self._tree)): {
                line: sorted({numbers[name] for name in names if name in numbers})
                for line, names in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        record = {
            "modules": {module: digest_of(self._tree / module) for module in lines},
            "tests": [[name, round(self._seconds[name], 3)] for name in tests],
            "lines": lines,
        }
        self._result.write_text(json.dumps(record))


def measure(tree: Path, path: str, folder: Path) -> None:
    """Measures one file of tests, or a folder of examples, unless it was measured already.

    Args:
        tree: The project.
        path: The tests.
        folder: Where what was measured is kept, a JSON file for each `path`.
    """
    files = [tree / path] if path.endswith(".py") else sorted((tree / path).rglob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    result = folder / f"{path.replace('/', '.')}-{digest}.json"
    if not result.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{path.replace('/', '.')}-*.json"):
            old.unlink()
        status = fork.run_pytest(
            tree,
            ["-m", "not slow", path],
            result.with_suffix(".log"),
            _SECONDS_OF_ONE_FILE,
            keeps_compiled=True,
            plugin=_LazyRecorder(tree, result),
        )
        if not result.exists():
            print(f"  {path} could not be measured: {status}; see {result.with_suffix('.log')}")
            result.write_text(json.dumps({"tests": [], "lines": {}}))


class _LazyRecorder:
    """A recorder that begins in the process of the tests, before they import the package."""

    def __init__(self, tree: Path, result: Path):
        self._made = (tree, result)

    def pytest_configure(self, config):
        self._recorder = _Recorder(*self._made)
        config.pluginmanager.register(self._recorder)

    def finish(self):
        self._recorder.finish()


def digest_of(path: Path) -> str:
    """A digest of a file; empty where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else ""


@dataclasses.dataclass(frozen=True)
class Selection:
    """Tests for one mutant.

    Attributes:
        tests: Their names, the fastest first, those of one file together.
        seconds: How long they took when they were measured.
        is_covered: Whether one of them runs the line.
    """

    tests: list[str]
    seconds: float
    is_covered: bool


class Coverage:
    """What was measured of several files of tests.

    Args:
        measured: What `measure` wrote.
        tree: The project. Of modules that have changed since, lines are not looked at.
    """

    def __init__(self, measured: list[Path], tree: Path):
        self._records = [json.loads(path.read_text()) for path in measured]
        for record in self._records:
            for module, digest in record["modules"].items():
                if digest_of(tree / module) != digest:
                    tests = {test for some in record["lines"][module].values() for test in some}
                    record["lines"][module] = {"any": sorted(tests)}

    def select_tests(self, module: str, lines: range, most_seconds: float) -> Selection:
        """The tests that run one of the lines, and after them the other tests of their files.

        Where no test runs them (the line is run at import, or in another process), the tests of
        definitions and those of the module are selected.
        """
        chosen = self._choose(module, lines, most_seconds)
        if chosen.is_covered:
            return chosen
        anywhere = self._choose(module, None, most_seconds)
        tests = [*OF_DEFINITIONS, *anywhere.tests]
        return dataclasses.replace(anywhere, tests=tests, is_covered=False)

    def _choose(self, module: str, lines: range | None, most_seconds: float) -> Selection:
        direct, beside = [], []
        for record in self._records:
            covered = record["lines"].get(module, {})
            found = {
                test
                for line, tests in covered.items()
                if lines is None or line == "any" or int(line) in lines
                for test in tests
            }
            if not found:
                continue
            for number, (name, seconds) in enumerate(record["tests"]):
                (direct if number in found else beside).append((seconds, name))
        kept = [*_limit_cases(direct), *_limit_cases(beside)]
        total, names = 0.0, []
        for seconds, name in kept:
            if names and total + seconds > most_seconds:
                continue
            total += seconds
            names.append(name)
        files = dict.fromkeys(name.partition("::")[0] for name in names)
        together = [name for file in files for name in names if name.partition("::")[0] == file]
        return Selection(together, total, bool(kept))


def _limit_cases(tests: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """The fastest first, and some cases of each parametrized test, always the same."""
    by_function = collections.defaultdict(list)
    for seconds, name in tests:
        by_function[name.partition("[")[0]].append((seconds, name))
    kept = []
    for function, cases in by_function.items():
        cases.sort()
        if len(cases) > _MOST_CASES:
            cases = random.Random(function).sample(cases, _MOST_CASES)
        kept.extend(cases)
    return sorted(kept)
