"""The versions of a served model: pushing the next one, and rolling the newest one back."""

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
    """The folder of a served model, `saved_models/<name>`, as those see it who write to it.

    A version is a folder whose name is a number; servers use the greatest.
    `assets.extra/lineage.json` of a version holds its origin. A version that was rolled back lies
    beside the others as `.<version>.rolled-back`, which servers pass over, and its number is not
    given again.

    Args:
        directory: The folder; made by `lock`.

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
        """Keeps others from pushing and rolling back; waits for those that do."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with file_lock(self.directory / ".lock"):
            yield

    def versions(self) -> list[int]:
        """The versions that a server sees, ascending."""
        if not self.directory.is_dir():
            return []
        return sorted(
            int(path.name)
            for path in self.directory.iterdir()
            if path.name.isdecimal() and path.is_dir()
        )

    def newest(self) -> int | None:
        """The version that is served."""
        versions = self.versions()
        return versions[-1] if versions else None

    def folder(self, version: int) -> Path:
        """The folder of a version."""
        return self.directory / str(version)

    def lineage(self, version: int) -> Mapping[str, Any]:
        """Lineage from when the version was pushed; nothing of one that was exported by hand."""
        return _lineage_in(self.folder(version))

    def push(
        self, saved_model: Path, lineage: Mapping[str, Any], card: ModelCard | None = None
    ) -> int:
        """Copies a SavedModel here as the next version, which appears whole; call under `lock`.

        Args:
            saved_model: Its folder.
            lineage: Its lineage; `lineage["model"]` tells it from others.
            card: Takes the place of the card that it has; `None` leaves that.

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
        """Removes the oldest versions, and keeps so many; call under `lock`."""
        removed = self.versions()[:-number]
        for version in removed:
            # Out of sight first: a server must not meet half a version.
            gone = Path(tempfile.mkdtemp(prefix=f".{version}.removed.", dir=self.directory))
            os.rename(self.folder(version), gone / "model")
            shutil.rmtree(gone)
        return removed

    def roll_back(self) -> int | None:
        """Withdraws the newest version from servers; call under `lock`.

        Returns:
            The version; `None` where there is none.
        """
        version = self.newest()
        if version is not None:
            os.rename(self.folder(version), self.directory / f".{version}{_ROLLED_BACK}")
        return version

    def was_rolled_back(self, model: str) -> int | None:
        """The version as which a model was served until it was rolled back, by `lineage["model"]`.

        Args:
            model: What tells the model from others.
        """
        for version in self.rolled_back():
            folder = self.directory / f".{version}{_ROLLED_BACK}"
            if _lineage_in(folder).get("model") == model:
                return version
        return None

    def rolled_back(self) -> list[int]:
        """The versions that were rolled back, ascending."""
        found = self.directory.glob(f".*{_ROLLED_BACK}")
        return sorted(int(path.name[1 : -len(_ROLLED_BACK)]) for path in found)


def _lineage_in(folder: Path) -> Mapping[str, Any]:
    file = folder / _LINEAGE
    return read_json(file) if file.exists() else {}
