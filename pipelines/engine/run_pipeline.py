"""Runs the components of a pipeline."""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_drill.workbench.cli.messages import message_of
from keras_drill.workbench.report.page.formatting import format_duration
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from pipelines.engine.artifact_store import Artifact, ArtifactStore
from pipelines.engine.component import Component
from pipelines.engine.execution import (
    FAILED,
    INTERRUPTED,
    KEPT,
    MADE,
    RUNNING,
    STOPPED,
    Execution,
    Step,
    now,
)
from pipelines.engine.progress import ProgressLine

OnEnd = Callable[[Execution, Mapping[str, Artifact]], None]


def run_pipeline(
    components: Sequence[Component],
    store: ArtifactStore,
    command: str = "",
    until: str | None = None,
    force: Collection[str] = (),
    on_end: OnEnd = lambda execution, artifacts: None,
) -> Execution:
    """Runs components in order. Components whose artifacts already exist are skipped.

    The fingerprint of an artifact depends on the component's name, version, settings and inputs,
    and on the version of this package. An interrupted pipeline that is started again finds its
    finished artifacts, and resumes where it stopped.

    Args:
        components: The components. Each must come after the components whose artifacts it reads.
        store: The store of artifacts and executions.
        command: The command line, which is recorded.
        until: Name of the last component to run; `None` for all.
        force: Names of components that run even if their artifacts exist.
        on_end: Function that is called at the end, also after an error, with the execution and its
            artifacts by name.

    Returns:
        The execution.

    Raises:
        RunError: A component fails or stops the pipeline, or another execution is running. The
            message names the component, the reason, and how to continue.
        ConfigError: `until` or `force` names an unknown component.
    """
    _check(components, until, force)
    if until is not None:
        names = [component.name for component in components]
        components = components[: names.index(until) + 1]
    with store.lock():
        store.remove_leftovers()
        steps = [Step(each.name, each.reads, each.writes) for each in components]
        execution = Execution.begin(store, command, steps)
        artifacts: dict[str, Artifact] = {}
        state = FAILED
        try:
            for place, component in enumerate(components):
                title = f"[{place + 1}/{len(components)}] {component.name}"
                run = _Run(store, execution, execution.steps[place], component, title)
                artifacts[component.writes] = run.artifact(artifacts, component.name in force)
                run.check(artifacts[component.writes])
            state = MADE
        except _Stopped as stop:
            state = STOPPED
            raise RunError(str(stop)) from None
        except KeyboardInterrupt:
            state = INTERRUPTED
            raise
        finally:
            with _record_of(failure=state != MADE):
                execution.end(store, state)
            with _record_of(failure=state != MADE):
                on_end(execution, artifacts)
    return execution


@contextlib.contextmanager
def _record_of(failure: bool) -> Iterator[None]:
    """Context manager for recording. After a failure, errors in it are only warnings."""
    try:
        yield
    except Exception as error:
        if not failure:
            raise
        message = message_of(error) or f"{type(error).__name__}: {error}"
        print(
            f"pipelines: warning: the execution is not completely recorded: {message}",
            file=sys.stderr,
        )


class _Stopped(Exception):
    """Signals that the pipeline must stop. The message is the reason."""


class _Run:
    """One component in one execution."""

    def __init__(
        self,
        store: ArtifactStore,
        execution: Execution,
        step: Step,
        component: Component,
        title: str,
    ):
        self.store = store
        self.execution = execution
        self.step = step
        self.component = component
        self.progress = ProgressLine(title)

    def artifact(self, artifacts: Mapping[str, Artifact], force: bool) -> Artifact:
        """Finds or makes the component's artifact. Raises `RunError` if the component fails."""
        try:
            inputs = {name: artifacts[name] for name in self.component.reads}
            inputs |= self.component.resolve(self.store, artifacts)
            settings = json.loads(json.dumps(self.component.settings()))
            fingerprint = _fingerprint(self.component, settings, inputs)
            found = self.store.find(self.component.writes, fingerprint)
            if found is not None and not force:
                self._report(KEPT, found)
                self.progress.end("nothing new")
                return found
            self._enter(RUNNING)
            return self._make(inputs, settings, fingerprint)
        except KeyboardInterrupt:
            with contextlib.suppress(OSError):  # reported when the execution ends
                self._enter(INTERRUPTED)
            raise
        except Exception as error:
            message = message_of(error)
            with contextlib.suppress(OSError):  # reported when the execution ends
                self._enter(FAILED, message or f"{type(error).__name__}: {error}")
            if message is None:  # an error of the program, not of its input
                raise
            raise RunError(
                f"{self.component.name}: {message}\nFinished artifacts are kept. After you correct "
                f"the error, the same command resumes at {self.component.name}"
            ) from error

    def check(self, artifact: Artifact) -> None:
        """Raises `_Stopped` if the component has a reason to stop the pipeline."""
        reason = self.component.stopping_reason(artifact.path)
        if reason is not None:
            self._enter(STOPPED, reason)
            raise _Stopped(f"{self.component.name}: {reason}")

    def _make(
        self, inputs: Mapping[str, Artifact], settings: dict[str, Any], fingerprint: str
    ) -> Artifact:
        component = self.component
        output = self.store.begin(component.writes, fingerprint, component.keeps_work)
        started, seconds = now(), time.monotonic()
        folders = {name: each.path for name, each in inputs.items()}
        try:
            facts = component.run(folders, output, self.progress)
        except Exception:
            if not component.keeps_work:
                shutil.rmtree(output, ignore_errors=True)
            raise
        lineage = {
            "artifact": component.writes,
            "made_by": component.name,
            "code_version": _code_version(component),
            "made_at": started,
            "seconds": round(time.monotonic() - seconds, 3),
            "execution": self.execution.number,
            "command": self.execution.command,
            "facts": facts,
            "settings": settings,
            "inputs": {
                name: {"path": self._relative(each.path), "content": each.content}
                for name, each in inputs.items()
            },
        }
        artifact = self.store.publish(output, component.writes, fingerprint, lineage)
        self._report(MADE, artifact)
        self.progress.end(format_duration(artifact.lineage["seconds"]))
        return artifact

    def _report(self, state: str, artifact: Artifact) -> None:
        self.step.artifact = self._relative(artifact.path)
        self.step.facts = dict(artifact.facts)
        self.step.seconds = artifact.lineage["seconds"]
        self._enter(state)

    def _enter(self, state: str, message: str | None = None) -> None:
        self.step.state, self.step.message = state, message
        self.execution.save(self.store)

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self.store.folder)


def _fingerprint(
    component: Component, settings: Mapping[str, Any], inputs: Mapping[str, Artifact]
) -> str:
    told = {
        "component": component.name,
        "version": _code_version(component),
        "settings": settings,
        "inputs": {name: artifact.content for name, artifact in inputs.items()},
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _code_version(component: Component) -> str:
    return f"{component.version}, keras-drill {importlib.metadata.version('keras-drill')}"


def _check(components: Sequence[Component], until: str | None, force: Collection[str]) -> None:
    names = [component.name for component in components]
    for name in [*([] if until is None else [until]), *force]:
        if name not in names:
            raise ConfigError(f"unknown component {name!r}; known: {', '.join(names)}")
    there: set[str] = set()
    for component in components:
        missing = set(component.reads) - there
        if missing:
            raise ValueError(
                f"Each of `components` must come after the components whose artifacts it reads; "
                f"no component before {component.name} writes {sorted(missing)}. "
                f"Received: components={names}"
            )
        there.add(component.writes)
