"""Time and peak memory of several methods that compute the same, each in a process of its own."""

import json
import os
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import describe, in_fresh_process, median_ratio, peak_memory


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

    def row(self, size: str, gradient_bytes: int, tolerance: float) -> list[Any]:
        """A row of a table of two methods, ours first, with the `columns`.

        Args:
            size: Numbers that are separated by commas.
            gradient_bytes: Bytes of the result, which are not counted.
            tolerance: Relative difference that the methods' values may have.
        """
        if not np.isclose(*self.values.values(), rtol=tolerance):
            raise RuntimeError(f"the methods differ: {self.values}")
        ours, other = self.values
        mib = {m: (peak - gradient_bytes) / 2**20 for m, peak in self.peak_bytes.items()}
        return [
            " × ".join(f"{int(number):,}" for number in size.split(",")),
            *(round(statistics.median(x), 2) for x in self.seconds.values()),
            round(median_ratio(self.seconds[other], self.seconds[ours]), 2),
            *(round(x) for x in mib.values()),
            round(mib[other] / mib[ours], 1) if mib[ours] > 0 else None,
        ]


def columns(axes: str, ours: str, other: str) -> list[str]:
    """Headings of the table whose rows `Comparison.row` makes.

    >>> columns("N × V", "fused", "plain")[:4]
    ['N × V', 'fused s', 'plain s', 'plain s / fused']
    """
    of_unit = ([f"{ours} {x}", f"{other} {x}", f"{other} {x} / {ours}"] for x in ("s", "MiB"))
    return [axes, *(heading for headings in of_unit for heading in headings)]


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
