"""The benchmark of accelerators: its plan, its table, and all of its parts on a CPU."""

import json
import time
from importlib.util import find_spec

import pytest

from benchmarks.accelerator import __main__ as accelerator
from benchmarks.accelerator import table
from benchmarks.accelerator.heads import count_operations
from tests.benchmarks.test_benchmarks import run

RECORD = {
    "command": "python -m benchmarks.accelerator",
    "date": "2026-11-28 03:00 UTC",
    "device": "a card",
    "versions": {"jax": "0.11.2"},
    "rows": [
        {"part": "loss", "case": "53,101,7 float32", "name": "fused", "ms": 1.234, "mib": 2345.6},
        {"part": "loss", "case": "53,101,7 float32", "name": "tokamax", "skipped": "no | such"},
        {"part": "heads", "case": "53,101,7", "name": "KerBS", "ms": 3.0, "over_tied": 1.5},
    ],
}


def test_the_table_has_the_columns_that_there_are_and_tells_what_is_left_out():
    text = table.describe(RECORD)
    assert "a card, 2026-11-28 03:00 UTC. jax 0.11.2." in text
    assert "| fused | 1.23 | 2,346 |  |" in text
    assert "| tokamax |  |  | left out: no / such |" in text
    assert "| KerBS | 3.00 | 1.50 |  |" in text


def test_the_table_replaces_what_is_between_the_marks(tmp_path):
    page, file = tmp_path / "page.md", tmp_path / "figures.json"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    file.write_text(json.dumps(RECORD))
    table.main([str(file), "--page", str(page)])
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n")
    assert "| fused |" in text and "old" not in text
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="must hold the marks"):
        table.main([str(file), "--page", str(page)])


def test_every_framework_and_size_has_a_process():
    args = accelerator.parse_arguments(["--dtypes", "bfloat16", "--sizes", "53,101,7", "2,3,5"])
    modules = [(task.part, task.module) for task in accelerator.plan(args)]
    assert modules == [
        *2 * [("loss", "loss_jax"), ("loss", "loss_torch")],
        ("heads", "heads"),
        *[(x, f"training_{y}") for x in ("transformer", "awd-lstm") for y in ("jax", "torch")],
        ("decoding", "decoding"),
    ]
    args = accelerator.parse_arguments(["--parts", "decoding", "loss", "--quick", "--no-torch"])
    assert [task.module for task in accelerator.plan(args)] == ["decoding", *2 * ["loss_jax"]]


def test_no_process_begins_when_the_time_is_up():
    task = accelerator.Task("loss", "a case", "no_such_module", {})
    found = list(accelerator.run_task(task, time.monotonic() - 1))
    assert found == [("no_such_module", {"skipped": "the time was up"})]


def test_operations_are_those_of_the_products():
    assert count_operations("tied", 2, 3, 5) == 6 * 2 * 3 * 5
    assert count_operations("KerBS", 2, 3, 5) == 3 * count_operations("tied", 2, 3, 5)
    assert count_operations("DRILL", 2, 3, 5) == 6 * 2 * 3 * 5 + 4 * 6 * 3 * 5 * 5
    assert count_operations("MoS", 2, 3, 5) == 15 * 6 * 2 * 3 * 5 + 6 * 2 * 15 * 5 * 5


needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="a benchmark of JAX")


@pytest.mark.slow
@needs_jax
@pytest.mark.parametrize("part", accelerator.PARTS)
def test_every_part_runs(part, tmp_path):
    """Each row has figures; only libraries that are not installed are left out."""
    file = tmp_path / "figures.json"
    options = ["--quick", "--parts", part, "--dtypes", "float32", "--json", file, "--no-torch"]
    output = run("accelerator", *options, backend="jax")
    assert table.TITLES[part] in output
    rows = json.loads(file.read_text())["rows"]
    timed = {row["name"] for row in rows if row.get("ms", 0) > 0}
    others = {row["name"] for row in rows if "ms" not in row}
    assert {
        "loss": {"fused", "fused, frozen labels", "all logits, XLA", "three products"},
        "heads": set(accelerator.HEADS),
        "transformer": {"keras_drill, tied", "keras_drill, drill"},
        "awd-lstm": {"keras_drill, tied", "keras_drill, drill", "keras_drill, tied, float32"},
        "decoding": {
            f"{search}, batch {batch}{graph}"
            for search in ("greedy", "beam 5")
            for batch in (1, 2)
            for graph in ("", ", one graph")
        },
    }[part] <= timed
    assert others <= {"errors", "errors, float32", "errors, one graph", "tokamax"}
    assert all("errors" in row for row in rows if row["name"].startswith("errors"))


@pytest.mark.slow
@needs_jax
def test_a_part_that_fails_and_one_that_takes_too_long_are_told(tmp_path):
    file = tmp_path / "figures.json"
    options = ["--quick", "--parts", "loss", "--sizes", "53,101", "--json", file, "--no-torch"]
    run("accelerator", *options, "--minutes", 0.02, backend="jax")
    rows = json.loads(file.read_text())["rows"]
    assert [row["skipped"] for row in rows] == 2 * ["the time was up"]
