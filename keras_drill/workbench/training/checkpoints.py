"""The progress of a training run, and the store of its checkpoints."""

import contextlib
import dataclasses
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.training.checkpoint_files import (
    ARRAYS,
    CHECKSUMS,
    HAS_CHECKSUMS,
    STATE,
    array_checksums,
    check_arrays,
    read_arrays,
    read_state,
    state_checksum,
)


@dataclasses.dataclass
class TrainingState:
    """Progress of a training run, which every checkpoint contains in addition to the variables.

    Args:
        epoch: number of finished epochs.
        batch: number of finished batches in the current epoch.
        step: number of finished batches in all epochs.
        epoch_seconds: time spent on the finished batches of the current epoch.
        history: for each finished epoch, its metrics by name.
        losses: the validation loss of each finished epoch.
        best_epoch: epoch of the best model, counted from 1; 0 before the first epoch has ended.
        best_loss: validation loss of the best model.
        changes: options that were changed when the training was resumed, the oldest change first.
            Each is a dictionary with the keys "option", "before", "now", "epoch" and "batch". The
            value "now" is used from this epoch and batch on, which count from 1.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    epoch_seconds: float = 0.0
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    losses: list[float] = dataclasses.field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = math.inf
    changes: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def has_stopped_improving(self, config: RunConfig) -> bool:
        """Returns whether the validation losses end the training, by `training.stopping`."""
        if config.training.stopping == "non-monotone":
            return self.is_above_older(config.training.patience)
        return self.has_waited(config.patience)

    def has_waited(self, patience: int) -> bool:
        """Returns whether none of the last `patience` epochs had the best loss; False for 0."""
        return 0 < patience <= self.epoch - self.best_epoch

    def is_above_older(self, interval: int) -> bool:
        """Returns whether the last loss is above the best loss of the older epochs.

        Older epochs are more than `interval` epochs before the last one. For an interval of 0, the
        result is always False. This is the criterion of AWD-LSTM, see `NonMonotonicAveraging`.

        >>> [TrainingState(losses=[5.0, 4.0, 4.5, loss]).is_above_older(1) for loss in (3.9, 4.1)]
        [False, True]
        """
        older = self.losses[: -interval - 1] if interval else []
        return bool(older) and self.losses[-1] > min(older)

    def to_mapping(self) -> dict[str, Any]:
        """Returns the state as a mapping for JSON."""
        return dataclasses.asdict(self)

    def assign(self, mapping: dict[str, Any]) -> None:
        """Assigns all attributes from a mapping that `to_mapping` returned."""
        mapping = {"changes": [], "losses": [], **mapping}  # absent in checkpoints of old versions
        for field in dataclasses.fields(self):
            setattr(self, field.name, mapping[field.name])


_NAME = re.compile(r"step-(\d{8,})")


class CheckpointStore:
    """Reads and writes the checkpoints of a run. A checkpoint is complete or does not exist.

    A checkpoint is a folder such as `step-00000042`. The folder holds the arrays, the training
    state, the step, and checksums of each array and of the state.

    A checkpoint is written under a temporary name, flushed to the disk and then renamed. So the
    previous checkpoint remains if the process is killed at any moment. Reading detects a damaged
    checkpoint, and uses the previous one instead.

    Args:
        folder: folder of the checkpoints.
        keep: number of checkpoints to keep. Older ones are removed.

    Example:

    >>> store = CheckpointStore(getfixture("tmp_path"))
    >>> store.save(7, {"model/0": np.zeros(3)}, {"epoch": 1})
    >>> arrays, state = store.load_latest()
    >>> arrays["model/0"].shape, state
    ((3,), {'epoch': 1})
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 2):
        self.folder = Path(folder)
        self.keep = keep
        self._damaged: set[int] = set()

    def steps(self) -> list[int]:
        """Returns the steps of the checkpoints in ascending order.

        Checkpoints that are known to be damaged, and other files in the folder, are ignored.
        """
        found = [(path, _NAME.fullmatch(path.name)) for path in self.folder.glob("step-*")]
        steps = {int(match[1]) for path, match in found if match and path.is_dir()}
        return sorted(steps - self._damaged)

    def save(self, step: int, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        """Writes the checkpoint of a step, unless it exists, and removes old checkpoints.

        After an `OSError` the other checkpoints are unchanged. The folder of the checkpoints is
        created if it is missing. The folder of the run is not, so that a run whose folder or disk
        was removed stays removed.
        """
        if step in self.steps():
            return
        beside = self.folder / ".writing"
        try:
            self.folder.mkdir(exist_ok=True)
            self._write(beside, step, arrays, state)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)  # frees the space of a full disk
            raise
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self._path(old))

    def _write(
        self, beside: Path, step: int, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]
    ) -> None:
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        with open(beside / ARRAYS, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # no name is `allow_pickle`
            _flush(file)
        checksums = {
            "step": step,
            "arrays": array_checksums(arrays),
            "state": state_checksum(state),
        }
        for name, content in ((STATE, {**state, HAS_CHECKSUMS: True}), (CHECKSUMS, checksums)):
            with open(beside / name, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
                _flush(file)
        for damaged in self._damaged:
            shutil.rmtree(self._path(damaged), ignore_errors=True)
        self._damaged.clear()
        os.rename(beside, self._path(step))
        _flush_folder(self.folder)

    def load(self, step: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Returns the arrays and the state of the checkpoint of a step.

        Raises:
            RunError: The checkpoint is missing or damaged.
        """
        if step not in self.steps():
            there = ", ".join(map(str, self.steps())) or "none"
            raise RunError(
                f"{self.folder} has no checkpoint of step {step}; steps with a checkpoint: {there}"
            )
        path = self._path(step)
        try:
            state, checksums = read_state(path, step)
            arrays = read_arrays(path / ARRAYS)
            if checksums is not None:
                check_arrays(arrays, checksums)
        except MemoryError:
            raise
        except Exception as error:  # NumPy, zipfile and zlib raise errors of different types
            raise _damaged(path, error) from error
        return arrays, state

    def load_latest(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Returns the arrays and the state of the last undamaged checkpoint.

        Prints a warning for each damaged checkpoint.

        Returns:
            The arrays and the state, or `None` if the store is empty.

        Raises:
            RunError: All checkpoints are damaged.
        """
        return self._load_whole() if self.steps() else None

    def _load_whole(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Loads the last undamaged checkpoint of a store that is not empty."""
        errors: list[RunError] = []
        for step in reversed(self.steps()):
            try:
                loaded = self.load(step)
            except RunError as error:
                errors.append(error)
                self._damaged.add(step)
                continue
            for damage in errors:
                print(f"{damage}; using the checkpoint of step {step} instead", file=sys.stderr)
            return loaded
        raise RunError(
            f"{errors[0]}, and no undamaged checkpoint is left. To train from the beginning, "
            f"remove the folder {self.folder}"
        )

    def progress(self) -> TrainingState | None:
        """Returns the training state of the last checkpoint, without reading its arrays.

        Returns:
            The state, or `None` if the store is empty.

        Raises:
            RunError: The state is damaged.
        """
        if not self.steps():
            return None
        step = self.steps()[-1]
        progress = TrainingState()
        try:
            progress.assign(read_state(self._path(step), step)[0]["training"])
        except Exception as error:  # each kind of damage raises another type of error
            raise _damaged(self._path(step), error) from error
        return progress

    def last_state(self) -> dict[str, Any]:
        """Returns the last state that can be read, or an empty mapping if there is none."""
        for step in reversed(self.steps()):
            with contextlib.suppress(Exception):  # each kind of damage raises another type of error
                return read_state(self._path(step), step)[0]
        return {}

    def mean(self, number: int, names: Collection[str]) -> dict[str, np.ndarray]:
        """Averages arrays over the last checkpoints.

        Damaged checkpoints are skipped with a warning.

        Args:
            number: number of checkpoints to average; all, if there are fewer.
            names: names of the arrays to average, in float64.

        Returns:
            All arrays of the last checkpoint, with averages in place of the arrays in `names`.

        Raises:
            RunError: All checkpoints are damaged.
        """
        arrays, _ = self._load_whole()
        totals = {name: arrays[name].astype("float64") for name in names}
        count = 1
        for step in reversed(self.steps()[:-1]):
            if count == number:
                break
            try:
                others, _ = self.load(step)
            except RunError as error:
                print(f"{error}; the average skips this checkpoint", file=sys.stderr)
                continue
            count += 1
            for name, total in totals.items():
                total += others[name]
        means = {name: total / count for name, total in totals.items()}
        return arrays | {name: mean.astype(arrays[name].dtype) for name, mean in means.items()}

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"


def _damaged(path: Path, error: Exception) -> RunError:
    reason = str(error) or type(error).__name__
    return RunError(f"the checkpoint {path} is damaged ({reason})")


def _flush(file) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Flushes a folder to the disk, so that a renamed file in it survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
