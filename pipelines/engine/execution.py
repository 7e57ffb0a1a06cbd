"""One execution of a pipeline, and the file that tells of it."""

import dataclasses
import datetime
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_drill.data.atomic import replace_file
from pipelines.engine.artifact_store import ArtifactStore

# The states of a component; an execution has all but "kept" and "waiting".
WAITING, RUNNING, MADE, KEPT = "waiting", "running", "made", "kept"
FAILED, STOPPED, INTERRUPTED, KILLED = "failed", "stopped", "interrupted", "killed"


@dataclasses.dataclass
class Step:
    """What became of a component in an execution.

    Args:
        component: Its name.
        reads: Names of the artifacts that it reads.
        writes: Name of the artifact that it writes.
        state: "waiting", "running", "made", "kept" (the artifact was there), "failed", "stopped"
            (the artifact is there, but the pipeline must not go on with it), or "interrupted".
        artifact: Folder of the artifact, relative to that of the pipeline.
        facts: What the component said of it.
        seconds: How long it took to make it, in whichever execution that was.
        message: What went wrong.
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
    """What `execution.json` tells.

    Args:
        number: The executions of a pipeline are numbered from 1.
        command: The command line behind it.
        steps: The components, in order.
        state: "running", "made", "failed", "stopped", "interrupted", or "killed".
        started: When, in UTC.
        ended: When, in UTC.
    """

    number: int
    command: str
    steps: list[Step]
    state: str = RUNNING
    started: str = ""
    ended: str | None = None

    @classmethod
    def begin(cls, store: ArtifactStore, command: str, steps: Sequence[Step]) -> "Execution":
        """The next execution of a pipeline whose lock is held; those left running were killed."""
        store.executions.mkdir(parents=True, exist_ok=True)
        numbers = [int(path.name) for path in store.executions.iterdir() if path.name.isdigit()]
        for number in numbers:
            _mark_killed(_file(store, number))
        execution = cls(max(numbers, default=0) + 1, command, list(steps), started=now())
        _file(store, execution.number).parent.mkdir()
        execution.save(store)
        return execution

    def end(self, store: ArtifactStore, state: str) -> None:
        """Writes that it is over."""
        self.state, self.ended = state, now()
        self.save(store)

    def save(self, store: ArtifactStore) -> None:
        """Writes `execution.json`."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        replace_file(_file(store, self.number), text + "\n")

    def folder(self, store: ArtifactStore) -> Path:
        """Where its files are."""
        return _file(store, self.number).parent


def now() -> str:
    """The time, for people to read: `2026-01-31 13:45:12 UTC`."""
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
