"""Checkpoints on disk."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_drill.training.run_error import RunError

_KEPT = 2


class CheckpointStore:
    """Checkpoints of a run, of which each is there as a whole or not at all.

    A checkpoint is a folder `step-00000042` with the arrays and a JSON file. It is written beside,
    flushed to the disk and renamed, so that a process killed at any moment leaves the one before.
    The last two are kept.

    Args:
        folder: where they are.

    Example:

    >>> store = CheckpointStore(getfixture("tmp_path"))
    >>> store.save(7, {"model/0": np.zeros(3)}, {"epoch": 1})
    >>> arrays, state = store.load_latest()
    >>> arrays["model/0"].shape, state
    ((3,), {'epoch': 1})
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)

    def steps(self) -> list[int]:
        """Steps that there are checkpoints of, in order."""
        return sorted(int(path.name.removeprefix("step-")) for path in self.folder.glob("step-*"))

    def save(self, step: int, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        """Writes the checkpoint of a step, unless it is there, and removes old ones."""
        if step in self.steps():
            return
        beside = self.folder / ".writing"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        with open(beside / "arrays.npz", "wb") as file:
            np.savez(file, **arrays)
            _flush(file)
        with open(beside / "state.json", "w", encoding="utf-8") as file:
            json.dump(state, file, indent=2)
            _flush(file)
        os.rename(beside, self._path(step))
        for old in self.steps()[:-_KEPT]:
            shutil.rmtree(self._path(old))

    def load_latest(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Arrays and state of the last checkpoint; `None` where there is none."""
        steps = self.steps()
        if not steps:
            return None
        path = self._path(steps[-1])
        try:
            with np.load(path / "arrays.npz") as file:
                arrays = dict(file)
            state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, EOFError) as error:
            raise RunError(
                f"the checkpoint {path} cannot be read ({error}); remove that folder to resume "
                "from the one before"
            ) from error
        return arrays, state

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"


def _flush(file) -> None:
    file.flush()
    os.fsync(file.fileno())
