"""The record of one execution of a pipeline."""

import dataclasses
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_drill.data.atomic import replace_file
from pipelines.engine.artifact_store import ArtifactStore

# The states of a component. An execution has all of them except "kept" and "waiting".
WAITING, RUNNING, MADE, KEPT = "waiting", "running", "made", "kept"
FAILED, STOPPED, INTERRUPTED, KILLED = "failed", "stopped", "interrupted", "killed"


@dataclasses.dataclass
class Step:
    """The state of a component in an execution.

    Args:
        component: Name of the component.
        reads: Names of the artifacts that the component reads.
        writes: Name of the artifact that the component writes.
        state: "waiting", "running", "made", "kept" (the artifact existed), "failed", "stopped" (the
            artifact exists, but the pipeline must stop after it), "interrupted", or "killed".
        artifact: Folder of the artifact, relative to the folder of the pipeline.
        facts: The facts that the component reported about the artifact.
        seconds: Duration of making the artifact, in this or an earlier execution.
        message: Error message, or the reason to stop.
    """

    component: str
    reads: tuple[str, ...]
    writes: str
    state: str = WAITING
    artifact: str | None = None
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: float | None = None
    message: str | None = None


@dataclasses.dataclass
class Execution:
    """The record of an execution, which is stored as `execution.json`.

    Args:
        number: Number of the execution, from 1.
        command: The command line that started the execution.
        steps: The components, in order.
        state: "running", "made", "failed", "stopped", "interrupted", or "killed".
        started: Start time, in UTC.
        ended: End time, in UTC.
    """

    number: int
    command: str
    steps: list[Step]
    state: str = RUNNING
    started: str = ""
    ended: str | None = None

    @classmethod
    def begin(cls, store: ArtifactStore, command: str, steps: Sequence[Step]) -> "Execution":
        """Begins the next execution.

        The caller must hold the lock of the store. Therefore executions that are still recorded as
        running were killed, and are marked as "killed".
        """
        store.executions.mkdir(parents=True, exist_ok=True)
        numbers = [int(path.name) for path in store.executions.iterdir() if path.name.isdigit()]
        for number in numbers:
            _mark_killed(_file(store, number))
        execution = cls(max(numbers, default=0) + 1, command, list(steps), started=now())
        _file(store, execution.number).parent.mkdir()
        execution.save(store)
        return execution

    def end(self, store: ArtifactStore, state: str) -> None:
        """Records the end of the execution."""
        self.state, self.ended = state, now()
        self.save(store)

    def save(self, store: ArtifactStore) -> None:
        """Writes `execution.json`."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        replace_file(_file(store, self.number), text + "\n")

    def folder(self, store: ArtifactStore) -> Path:
        """Returns the folder of the execution's files."""
        return _file(store, self.number).parent


def now() -> str:
    """Returns the current time in the form `2026-01-31 13:45:12 UTC`."""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _file(store: ArtifactStore, number: int) -> Path:
    return store.executions / f"{number:04d}" / "execution.json"


def _mark_killed(file: Path) -> None:
    if not file.exists():  # killed before it was written
        return
    record = json.loads(file.read_text(encoding="utf-8"))
    if record["state"] != RUNNING:
        return
    record["state"] = KILLED
    for step in record["steps"]:
        step["state"] = KILLED if step["state"] == RUNNING else step["state"]
    replace_file(file, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
