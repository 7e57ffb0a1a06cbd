"""The last sections of a page: the environment of the runs, and their options."""

import importlib.metadata
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import keras

from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.report.page.formatting import MISSING
from keras_drill.workbench.report.run_summary import RunSummary


def describe_environment(
    command: Sequence[str] | None = None, seed: int | Mapping[str, int] | None = None
) -> dict[str, str]:
    """Returns names and values for the environment table of a report.

    Args:
        command: Command line of the run; by default the command line of this process.
        seed: Seed of the run, or seeds of several runs by their names; omitted if `None`.

    Example:

    >>> describe_environment(command=["keras-drill", "train", "my recipe"], seed=3)["command"]
    "keras-drill train 'my recipe'"
    """
    described = {
        "command": shlex.join(sys.orig_argv if command is None else command),
        "seed": _seeds(seed),
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
    return {name: value for name, value in described.items() if value}


def _seeds(seed: int | Mapping[str, int] | None) -> str:
    """Formats the common seed, or the seed of each run if seeds differ.

    >>> _seeds({"tied": 3, "drill": 3}), _seeds({"tied": 3, "drill": 5})
    ('3', 'tied: 3, drill: 5')
    """
    if not isinstance(seed, Mapping):
        return "" if seed is None else str(seed)
    if len(set(seed.values())) < 2:
        return "".join({str(value) for value in seed.values()})
    return ", ".join(f"{name}: {value}" for name, value in seed.items())


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


def environment_section(environment: Mapping[str, str]) -> ElementTree.Element:
    """Builds the section with versions, hardware, command and seed."""
    rows: list[list[ElementTree.Element | str]] = [
        [name, element("code", str(value))] for name, value in environment.items()
    ]
    shown = table("Environment of the runs", ["what", "value"], rows)
    return element("section", element("h2", "Environment"), shown, class_="facts")


def configuration_section(runs: Sequence[RunSummary]) -> ElementTree.Element:
    """Builds the section with the options of all runs.

    The section has tables of the options that differ between runs, of the options that changed
    when a run was resumed, and of all options.
    """
    runs = [run for run in runs if run.config]
    options = [_flatten(run.config) for run in runs]
    names = list(dict.fromkeys(name for option in options for name in option))
    differing = [name for name in names if len({option.get(name) for option in options}) > 1]

    def header() -> list[ElementTree.Element | str]:
        return ["option", *(element("bdi", run.name) for run in runs)]

    def rows(chosen: Sequence[str]) -> list[list[ElementTree.Element | str]]:
        return [
            [
                element("code", name),
                *(element("code", option.get(name, MISSING)) for option in options),
            ]
            for name in chosen
        ]

    parts = [element("h2", "Configuration")]
    if differing:
        parts.append(table("Options in which the runs differ", header(), rows(differing)))
    changes = _changes(runs)
    if changes:
        columns: list[ElementTree.Element | str] = [
            "run",
            "option",
            "old value",
            "new value",
            "since",
        ]
        parts.append(table("Options that were changed when a run was resumed", columns, changes))
    parts.append(
        element(
            "details",
            element("summary", f"All {len(names)} options"),
            table("All options", header(), rows(names)),
        )
    )
    return element("section", *parts, class_="facts")


def _changes(runs: Sequence[RunSummary]) -> list[list[ElementTree.Element | str]]:
    return [
        [
            element("bdi", run.name),
            element("code", change["option"]),
            element("code", str(change["before"])),
            element("code", str(change["now"])),
            f"epoch {change['epoch']}, batch {change['batch']}",
        ]
        for run in runs
        for change in run.changes
    ]


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Maps dotted names to values as text.

    >>> _flatten({"seed": 3, "model": {"units": [5, 7]}})
    {'seed': '3', 'model.units': '[5, 7]'}
    """
    flat: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = str(value)
    return flat
