"""Writes the HTML page of an execution."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from keras_drill.workbench.report import describe_environment
from keras_drill.workbench.report.facts_sections import environment_section
from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.report.page.formatting import MISSING, format_duration
from keras_drill.workbench.report.page.write_page import write_page
from pipelines.engine.artifact_store import LINEAGE, Artifact, ArtifactStore
from pipelines.engine.component import Component
from pipelines.engine.execution import Execution, Step
from pipelines.page.graph import graph, state_mark

PAGE = "report.html"
_VERDICTS = {
    "made": "All components are complete.",
    "failed": "A component failed.",
    "stopped": "A component stopped the pipeline.",
    "interrupted": "The execution was interrupted.",
}


def write_execution_page(
    execution: Execution,
    store: ArtifactStore,
    components: Sequence[Component],
    artifacts: Mapping[str, Artifact],
) -> Path:
    """Writes `report.html` into the execution's folder and returns its path.

    Args:
        execution: A finished execution.
        store: The store of the execution.
        components: The components of the execution.
        artifacts: The artifacts of the execution, by name.
    """
    folder = execution.folder(store)
    sections = [_components_section(execution, store, folder)]
    for component in components:
        if component.writes in artifacts:
            sections += component.sections(artifacts[component.writes].path)
    sections.append(environment_section(describe_environment([execution.command])))
    summary = [
        _VERDICTS[execution.state],
        f" Execution {execution.number} began on {execution.started} and ended on "
        f"{execution.ended}.",
    ]
    return write_page(folder / PAGE, f"Pipeline {store.folder.resolve().name}", summary, sections)


def _components_section(
    execution: Execution, store: ArtifactStore, folder: Path
) -> ElementTree.Element:
    parts = [element("h2", "Components")]
    parts += [
        element("p", line, class_="warning")
        for step in execution.steps
        if step.message
        for line in f"{step.component}: {step.message}".splitlines()
    ]
    parts.append(
        element(
            "figure",
            graph(execution.steps),
            element(
                "figcaption",
                "Lines lead from each component to the components that read its artifact.",
            ),
        )
    )
    rows = [
        [
            element("span", state_mark(step.state), f" {step.component}"),
            step.state,
            _facts(step),
            MISSING if step.seconds is None else format_duration(step.seconds),
            _artifact(step, store, folder),
        ]
        for step in execution.steps
    ]
    header = ["component", "state", "facts", "duration", "artifact"]
    parts.append(table("State of the components", header, rows))
    return element("section", *parts, class_="facts pipeline")


def _facts(step: Step) -> ElementTree.Element | str:
    shown = [
        f"{name} {value:,}" if isinstance(value, int | float) else f"{name} {value}"
        for name, value in step.facts.items()
        if isinstance(value, str | int | float)
    ]
    if not shown:
        return MISSING
    return element("ul", *(element("li", element("bdi", fact)) for fact in shown))


def _artifact(step: Step, store: ArtifactStore, folder: Path) -> ElementTree.Element | str:
    if step.artifact is None:
        return MISSING
    path = os.path.relpath(store.folder / step.artifact, folder)
    return element(
        "span",
        element("a", step.writes, href=quote(path)),
        " (",
        element("a", "lineage", href=quote(f"{path}/{LINEAGE}")),
        ")",
    )
