"""The artifact store: a folder for each artifact, named after a fingerprint of its inputs."""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_drill.data.atomic import replace_file
from keras_drill.data.file_lock import file_lock
from keras_drill.data.read_json import read_json
from keras_drill.workbench.tasks.errors import RunError

LINEAGE = "lineage.json"
_WORK = ".work"
_CHUNK = 1 << 20


@dataclasses.dataclass(frozen=True)
class Artifact:
    """The output of a component.

    Args:
        name: Name of the artifact, for example "examples".
        path: Folder of the artifact.
        lineage: Content of its `lineage.json`: the component, the time, the inputs, and the files.
    """

    name: str
    path: Path
    lineage: Mapping[str, Any]

    @property
    def content(self) -> str:
        """The hexadecimal digest of all files of the artifact except `lineage.json`."""
        return self.lineage["content"]

    @property
    def facts(self) -> Mapping[str, Any]:
        """The facts that the component reported about the artifact."""
        return self.lineage["facts"]


class ArtifactStore:
    """The folder of a pipeline.

        .lock                           held by the running execution
        artifacts/<name>/<fingerprint>/ output of a component, and lineage.json
        executions/<number>/            execution.json and report.html

    An artifact is written to a hidden folder next to its final place, which is renamed when the
    artifact is complete. So a process that is killed at any moment leaves no incomplete artifact.

    Args:
        folder: Path of the folder; `lock` creates it.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self.artifacts = self.folder / "artifacts"
        self.executions = self.folder / "executions"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Context manager that locks the folder, so that no other execution uses it.

        Raises:
            RunError: Another execution is running.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with file_lock(self.folder / ".lock", wait=False):
                yield
        except BlockingIOError:
            raise RunError(
                f"another execution is running in {self.folder}: wait until it ends, or give "
                "another --folder"
            ) from None

    def find(self, name: str, fingerprint: str) -> Artifact | None:
        """Returns the artifact with a fingerprint; `None` if it is missing or damaged."""
        return self._read(name, self.artifacts / name / fingerprint)

    def all(self, name: str) -> list[Artifact]:
        """Returns all artifacts with this name, the oldest first."""
        folders = [path for path in (self.artifacts / name).glob("[!.]*") if path.is_dir()]
        found = [artifact for path in folders if (artifact := self._read(name, path))]
        return sorted(found, key=_age)

    def begin(self, name: str, fingerprint: str, keeps_work: bool) -> Path:
        """Creates the folder to which a component writes an artifact.

        Args:
            name: Name of the artifact.
            fingerprint: Its fingerprint.
            keeps_work: Whether to keep the files that an earlier process left in the folder.
        """
        folder = self.artifacts / name / f".{fingerprint}{_WORK if keeps_work else '.partial'}"
        if not keeps_work:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def publish(self, made: Path, name: str, fingerprint: str, lineage: dict[str, Any]) -> Artifact:
        """Moves a complete artifact to its final place. Replaces an artifact that is already there.

        Args:
            made: The folder that `begin` returned.
            name: Name of the artifact.
            fingerprint: Its fingerprint.
            lineage: Content of `lineage.json`. The method adds the files and their digest.
        """
        (made / LINEAGE).unlink(missing_ok=True)
        files = {str(path.relative_to(made)): _file_entry(path) for path in _files_in(made)}
        content = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
        lineage = {**lineage, "content": content, "files": files}
        replace_file(made / LINEAGE, json.dumps(lineage, indent=2, ensure_ascii=False) + "\n")
        _sync_folders(made)
        place = self.artifacts / name / fingerprint
        old = place.with_name(f".{fingerprint}.old")
        if place.exists():
            os.rename(place, old)
        os.rename(made, place)
        _sync(place.parent)
        shutil.rmtree(old, ignore_errors=True)
        return Artifact(name, place, lineage)

    def remove_leftovers(self) -> None:
        """Removes the files of killed processes, unless a component resumes from them."""
        for path in self.artifacts.glob("*/.*"):
            if not path.name.endswith(_WORK):
                shutil.rmtree(path)

    def _read(self, name: str, folder: Path) -> Artifact | None:
        try:
            lineage = read_json(folder / LINEAGE)
            whole = all(
                (folder / file).stat().st_size == entry["bytes"]
                for file, entry in lineage["files"].items()
            )
            whole &= isinstance(lineage["made_at"], str) and isinstance(lineage["facts"], dict)
            whole &= isinstance(lineage["content"], str)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return Artifact(name, folder, lineage) if whole else None


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _file_entry(path: Path) -> dict[str, Any]:
    """Returns the size and digest of a file after flushing it to the disk."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def _sync_folders(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            _sync(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _age(artifact: Artifact) -> tuple[str, int]:
    """Returns a key that sorts artifacts by age, the oldest first.

    For artifacts with the same `made_at`, in whole seconds, the time of the file decides.
    """
    return artifact.lineage["made_at"], (artifact.path / LINEAGE).stat().st_mtime_ns
