"""Pushes new versions of a served model, and rolls back the newest version."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_drill.data.file_lock import file_lock
from keras_drill.data.read_json import read_json
from keras_drill.export.model_card import ModelCard
from keras_drill.export.saved_model_version import new_version

_LINEAGE = Path("assets.extra") / "lineage.json"
_ROLLED_BACK = ".rolled-back"


class ServedVersions:
    """Manages the versions of a served model in its folder, `saved_models/<name>`.

    A version is a folder whose name is a number. Servers use the highest version. The file
    `assets.extra/lineage.json` of a version describes the origin of the version. Rolling back a
    version renames its folder to `.<version>.rolled-back`, which servers ignore. The number is not
    used again.

    Args:
        directory: Path of the folder; `lock` creates it.

    Example:

    >>> folder = getfixture("tmp_path")
    >>> model = folder / "model"
    >>> (model / "variables").mkdir(parents=True)
    >>> served = ServedVersions(folder / "saved_models" / "cats")
    >>> with served.lock():
    ...     [served.push(model, {"model": name}) for name in ("first", "second")]
    [1, 2]
    >>> with served.lock():
    ...     served.roll_back()
    2
    >>> served.versions(), served.was_rolled_back("second")
    ([1], 2)
    """

    def __init__(self, directory: str | os.PathLike):
        self.directory = Path(directory)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Context manager that locks the folder for pushing and rolling back.

        The context manager waits for other processes that hold the lock.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with file_lock(self.directory / ".lock"):
            yield

    def versions(self) -> list[int]:
        """Returns the versions that a server sees, in ascending order."""
        if not self.directory.is_dir():
            return []
        return sorted(
            int(path.name)
            for path in self.directory.iterdir()
            if path.name.isdecimal() and path.is_dir()
        )

    def newest(self) -> int | None:
        """Returns the newest version, which is served; `None` if there is none."""
        versions = self.versions()
        return versions[-1] if versions else None

    def folder(self, version: int) -> Path:
        """Returns the folder of a version."""
        return self.directory / str(version)

    def lineage(self, version: int) -> Mapping[str, Any]:
        """Returns the lineage (origin) of a version; empty if it was not pushed by `push`."""
        return _lineage_in(self.folder(version))

    def push(
        self, saved_model: Path, lineage: Mapping[str, Any], card: ModelCard | None = None
    ) -> int:
        """Copies a SavedModel to the next version, atomically. Call this method under `lock`.

        Args:
            saved_model: Folder of the SavedModel.
            lineage: Origin of the version; `lineage["model"]` identifies the model.
            card: New model card; `None` keeps the present one.

        Returns:
            The version.
        """
        with new_version(self.directory, None) as folder:
            shutil.copytree(saved_model, folder.model)
            extra = folder.model / _LINEAGE.parent
            extra.mkdir(exist_ok=True)
            told = json.dumps(lineage, indent=2, ensure_ascii=False) + "\n"
            (folder.model / _LINEAGE).write_text(told, encoding="utf-8")
            if card is not None:
                card.write(extra)
        return int(folder.published.name)

    def remove_all_but(self, number: int) -> list[int]:
        """Removes all versions except the newest ones. Call this method under `lock`."""
        removed = self.versions()[:-number]
        for version in removed:
            # Hide the folder first, since a server must not see an incomplete version.
            gone = Path(tempfile.mkdtemp(prefix=f".{version}.removed.", dir=self.directory))
            os.rename(self.folder(version), gone / "model")
            shutil.rmtree(gone)
        return removed

    def roll_back(self) -> int | None:
        """Rolls back the newest version, so that servers use the version before.

        Call this method under `lock`.

        Returns:
            The version that was rolled back; `None` if there was none.
        """
        version = self.newest()
        if version is not None:
            os.rename(self.folder(version), self.directory / f".{version}{_ROLLED_BACK}")
        return version

    def was_rolled_back(self, model: str) -> int | None:
        """Returns the version of a model that was rolled back; `None` if there is none.

        Args:
            model: The `lineage["model"]` that identifies the model.
        """
        for version in self.rolled_back():
            folder = self.directory / f".{version}{_ROLLED_BACK}"
            if _lineage_in(folder).get("model") == model:
                return version
        return None

    def rolled_back(self) -> list[int]:
        """Returns the versions that were rolled back, in ascending order."""
        found = self.directory.glob(f".*{_ROLLED_BACK}")
        return sorted(int(path.name[1 : -len(_ROLLED_BACK)]) for path in found)


def _lineage_in(folder: Path) -> Mapping[str, Any]:
    file = folder / _LINEAGE
    return read_json(file) if file.exists() else {}
