"""The report's last sections: what the runs ran on, and all their options."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from keras_drill.report.elements import element, table
from keras_drill.report.formatting import MISSING
from keras_drill.report.run_summary import RunSummary


def environment_section(environment: Mapping[str, str]) -> ElementTree.Element:
    """Versions, hardware, command and seed."""
    rows = [[name, element("code", str(value))] for name, value in environment.items()]
    shown = table("Environment of the runs", ["what", "value"], rows)
    return element("section", element("h2", "Environment"), shown, class_="facts")


def configuration_section(runs: Sequence[RunSummary]) -> ElementTree.Element:
    """Resolved options of all runs in one folded table, after those that differ between runs."""
    runs = [run for run in runs if run.config]
    options = [_flatten(run.config) for run in runs]
    names = list(dict.fromkeys(name for option in options for name in option))
    differing = [name for name in names if len({option.get(name) for option in options}) > 1]
    header = ["option", *(element("bdi", run.name) for run in runs)]

    def rows(chosen: Sequence[str]) -> list[list[ElementTree.Element | str]]:
        return [
            [
                element("code", name),
                *(element("code", option.get(name, MISSING)) for option in options),
            ]
            for name in chosen
        ]

    def copied(cells: Sequence[ElementTree.Element | str]) -> list[ElementTree.Element | str]:
        return [cell if isinstance(cell, str) else element(cell.tag, cell.text) for cell in cells]

    parts = [element("h2", "Configuration")]
    if differing:
        parts.append(table("Options in which the runs differ", copied(header), rows(differing)))
    parts.append(
        element(
            "details",
            element("summary", f"All {len(names)} resolved options"),
            table("Resolved options", header, rows(names)),
        )
    )
    return element("section", *parts, class_="facts")


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted names to values as text.

    >>> _flatten({"seed": 3, "model": {"units": [5, 7]}})
    {'seed': '3', 'model.units': '[5, 7]'}
    """
    flat = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = str(value)
    return flat
