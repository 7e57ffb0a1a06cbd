"""Common functions of benchmarks: alternating measurement, peak memory, environment line."""

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def alternate(
    functions: dict[str, Callable],
    rounds: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each function in each round, taken in turn so that drift hits all alike.

    Every function runs twice before (tracing, warm-up) and must wait for its own result. With
    `clock=time.process_time` they are the processor's, which others on the machine hardly change.
    """
    for function in functions.values():
        function()
        function()
    seconds = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = clock()
            function()
            seconds[name].append(clock() - start)
    return seconds


def median_ratio(numerator: list[float], denominator: list[float]) -> float:
    """Median over rounds of one function's time over another's in the same round."""
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


def peak_memory(function: Callable) -> int:
    """Bytes by which `function()` raises the process's peak resident memory (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    function()
    return max(0, _status("VmHWM") - before)


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def in_fresh_process(module: str, *arguments: str, python: str = sys.executable) -> str:
    """Standard output of `python -m module arguments`, for what a used process would distort."""
    command = [python, "-m", module, *arguments]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return result.stdout


def num_cores() -> int:
    """Cores that this process may run on (Linux)."""
    return len(os.sched_getaffinity(0))


def describe() -> str:
    """Hardware and versions, one line."""
    packages = []
    for name in ("tensorflow", "keras", "torch", "numpy"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} absent")
    processor = platform.processor() or "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return ", ".join([f"{num_cores()} cores of {processor}", platform.platform(), *packages])
