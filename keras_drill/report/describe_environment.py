"""The machine, versions, command and seed behind a run."""

import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Sequence

import keras


def describe_environment(
    command: Sequence[str] | None = None, seed: int | None = None
) -> dict[str, str]:
    """Names and values for the report's environment table.

    Args:
        command: The command line behind the run; by default this process's.
        seed: The run's seed.

    Example:

    >>> describe_environment(command=["keras-drill", "train", "my recipe"], seed=3)["command"]
    "keras-drill train 'my recipe'"
    """
    described = {
        "command": shlex.join(sys.orig_argv if command is None else command),
        "seed": "not fixed" if seed is None else str(seed),
        "processor": f"{_processor_name()}, {_available_cores()} cores",
        "accelerators": ", ".join(keras.distribution.list_devices("gpu")) or "none",
        "system": platform.platform(),
        "Python": platform.python_version(),
        "Keras backend": keras.backend.backend(),
        "precision": keras.config.dtype_policy().name,
    }
    for distribution in ("keras-drill", "keras", "tensorflow", "tensorflow-text", "jax", "numpy"):
        try:
            described[distribution] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return described


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    except FileNotFoundError:  # macOS and Windows
        names = []
    return names[0] if names else platform.processor() or platform.machine()
