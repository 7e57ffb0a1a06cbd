"""Time and peak memory of several methods that compute the same, each in a process of its own."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import describe, in_fresh_process, peak_memory


class Comparison(NamedTuple):
    """What `compare_methods` measured, by method.

    Attributes:
        values: The number that a method computes.
        seconds: Times of its runs, in the order of the rounds.
        peak_bytes: Peak memory of a run beyond what was in memory before.
    """

    values: dict[str, float]
    seconds: dict[str, list[float]]
    peak_bytes: dict[str, float]


def measure_once(kind: str, step: Callable, small_step: Callable) -> list[float]:
    """Measures a method in this process.

    Args:
        kind: "memory" or "time".
        step: Function whose first result is a number.
        small_step: The same at a small size, which loads libraries and the compiler.

    Returns:
        The bytes of "memory"; or the number, and the seconds of two runs, of "time".
    """
    if kind == "memory":
        small_step()
        return [peak_memory(step)]
    value, seconds = float(step()[0]), []
    for _ in range(2):
        start = time.perf_counter()
        float(step()[0])
        seconds.append(time.perf_counter() - start)
    return [value, *seconds]


def compare_methods(
    module: str, methods: Sequence[str], arguments: Sequence[str], rounds: int
) -> Comparison:
    """Measures methods in processes that alternate.

    Args:
        module: A benchmark that prints the result of `measure_once` as JSON if it is called with
            `--once KIND METHOD`.
        methods: Names of the methods.
        arguments: Other arguments of the benchmark.
        rounds: Number of processes per method that measure time.
    """

    def run(kind: str, method: str) -> list[float]:
        return json.loads(in_fresh_process(module, "--once", kind, method, *arguments))

    peak_bytes = {method: run("memory", method)[0] for method in methods}
    values: dict[str, float] = {}
    seconds: dict[str, list[float]] = {method: [] for method in methods}
    for _ in range(rounds):
        for method in methods:
            values[method], *found = run("time", method)
            seconds[method] += found
    return Comparison(values, seconds, peak_bytes)


def write_table(module: str, name: str, table: dict[str, Any], file: Path | None) -> None:
    """Prints a table with its circumstances as JSON, and writes it to a file.

    Args:
        module: The benchmark.
        name: Name of the table.
        table: Columns and rows.
        file: A file under results/, or `None`.
    """
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    words = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    found = {
        "command": shlex.join([*words, "python", "-m", module, *sys.argv[1:]]),
        "hardware": f"{describe()}; load average {os.getloadavg()[0]:.1f}",
        "tables": {name: table},
    }
    text = json.dumps(found, indent=2, ensure_ascii=False)
    print(text)
    if file:
        file.write_text(text + "\n")
