"""How far a training has come, and where that is kept."""

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
    """What a training knows beside its variables; kept in every checkpoint.

    Args:
        epoch: epochs done.
        batch: batches done of the epoch under way.
        step: batches done in all.
        epoch_seconds: time spent on the batches done of the epoch under way.
        history: one mapping from name to value per epoch done.
        losses: the validation loss of each.
        best_epoch: epoch of the best model, from 1; 0 where there is none yet.
        best_loss: its validation loss.
        changes: options that were changed when the training was resumed, from the first to the
            last: `{"option", "before", "now", "epoch", "batch"}`, with the epoch and the batch,
            from 1, from which the new value holds.
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
        """Whether the validation loss ends the training, as the options have it."""
        if config.training.stopping == "non-monotone":
            return self.is_above_older(config.training.patience)
        return self.has_waited(config.patience)

    def has_waited(self, patience: int) -> bool:
        """Whether so many epochs have passed without a better one; 0 is for ever."""
        return 0 < patience <= self.epoch - self.best_epoch

    def is_above_older(self, interval: int) -> bool:
        """Whether the last loss is above the best of those more than `interval` epochs before the
        last; 0 is never. The criterion of AWD-LSTM, see `NonMonotonicAveraging`.

        >>> [TrainingState(losses=[5.0, 4.0, 4.5, loss]).is_above_older(1) for loss in (3.9, 4.1)]
        [False, True]
        """
        older = self.losses[: -interval - 1] if interval else []
        return bool(older) and self.losses[-1] > min(older)

    def to_mapping(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)

    def assign(self, mapping: dict[str, Any]) -> None:
        """Takes over what `to_mapping` gave."""
        mapping = {"changes": [], "losses": [], **mapping}  # old versions did not record them
        for field in dataclasses.fields(self):
            setattr(self, field.name, mapping[field.name])


_NAME = re.compile(r"step-(\d{8,})")


class CheckpointStore:
    """Checkpoints of a run, of which each is there as a whole or not at all.

    A checkpoint is a folder `step-00000042` with the arrays, the state, and the step and checksums
    of each array and the state. It is written beside, flushed to the disk and renamed, so that a
    process killed at any moment leaves the one before. What the disk has damaged is noticed when
    it is read, and the checkpoint before it is taken.

    Args:
        folder: where they are.
        keep: how many to keep, the last ones.

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
        """Steps that there are checkpoints of, in order; damaged ones that were found out are not.

        What else lies in the folder is left alone.
        """
        found = [(path, _NAME.fullmatch(path.name)) for path in self.folder.glob("step-*")]
        steps = {int(match[1]) for path, match in found if match and path.is_dir()}
        return sorted(steps - self._damaged)

    def save(self, step: int, arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
        """Writes the checkpoint of a step, unless it is there, and removes old ones.

        After an `OSError` the others are as they were. The folder is made where it is missing, but
        not the one that it lies in: a run that was removed, or whose disk was, does not come back.
        """
        if step in self.steps():
            return
        beside = self.folder / ".writing"
        try:
            self.folder.mkdir(exist_ok=True)
            self._write(beside, step, arrays, state)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)  # it may be what fills the disk
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
        """Arrays and state of the checkpoint of a step. Raises `RunError` where it is damaged."""
        if step not in self.steps():
            there = ", ".join(map(str, self.steps())) or "none"
            raise RunError(f"{self.folder} has no checkpoint of step {step}; there are: {there}")
        path = self._path(step)
        try:
            state, checksums = read_state(path, step)
            arrays = read_arrays(path / ARRAYS)
            if checksums is not None:
                check_arrays(arrays, checksums)
        except MemoryError:
            raise
        except Exception as error:  # NumPy, zipfile and zlib each have their own
            raise _damaged(path, error) from error
        return arrays, state

    def load_latest(self) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Arrays and state of the last checkpoint that is whole; `None` where there is none at all.

        Says on the standard error which ones are damaged. Raises `RunError` where all are.
        """
        return self._load_whole() if self.steps() else None

    def _load_whole(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The last checkpoint that is whole; there must be some."""
        errors: list[RunError] = []
        for step in reversed(self.steps()):
            try:
                loaded = self.load(step)
            except RunError as error:
                errors.append(error)
                self._damaged.add(step)
                continue
            for damage in errors:
                print(f"{damage}; going on from step {step}", file=sys.stderr)
            return loaded
        raise RunError(
            f"{errors[0]}, and there is no other that is whole; remove the folder "
            f"{self.folder} to train from the beginning"
        )

    def progress(self) -> TrainingState | None:
        """How far the last checkpoint had come, from its small file; `None` where there is none."""
        if not self.steps():
            return None
        step = self.steps()[-1]
        progress = TrainingState()
        try:
            progress.assign(read_state(self._path(step), step)[0]["training"])
        except Exception as error:  # as many as there are kinds of damage
            raise _damaged(self._path(step), error) from error
        return progress

    def last_state(self) -> dict[str, Any]:
        """The state of the last checkpoint whose state can be read; empty where there is none."""
        for step in reversed(self.steps()):
            with contextlib.suppress(Exception):  # as many as there are kinds of damage
                return read_state(self._path(step), step)[0]
        return {}

    def mean(self, number: int, names: Collection[str]) -> dict[str, np.ndarray]:
        """Arrays of the last checkpoint, those with these names averaged over the last ones.

        Checkpoints that are damaged are passed over, and named on the standard error. Raises
        `RunError` where all are.

        Args:
            number: over how many, or over all where there are fewer.
            names: of the arrays to average, in float64.
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
                print(f"{error}; the mean is taken without it", file=sys.stderr)
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
    """Makes a rename in the folder outlive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
