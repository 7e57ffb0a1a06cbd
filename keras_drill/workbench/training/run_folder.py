"""The folder of one run, with its files and the history of its epochs."""

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_drill.data.atomic import replace_file
from keras_drill.data.file_lock import file_lock
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import RunError
from keras_drill.workbench.tasks.load_config import CONFIGS, load_config
from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.option_changes import (
    OptionChange,
    option_changes,
    recorded_options,
)


class RunFolder:
    """The folder of a run and the paths of its files.

        config.toml      all options
        vocabulary.txt   one word per line, with vocabulary.counts for the words' counts, or other
                         files in which the task stores the vocabulary
        checkpoints/     the checkpoints from which `keras-drill train` resumes
        model.keras      the best model
        averaged.keras   the mean of the last checkpoints, if requested and better than the best
        history.csv      one line per epoch
        results.json     metrics of the best model
        logs/            curves for TensorBoard
        report.html      the report

    Args:
        path: path of the folder, which `lock` creates.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        self.config_file = self.path / "config.toml"
        self.checkpoints = self.path / "checkpoints"
        self.model_file = self.path / "model.keras"
        self.averaged_model_file = self.path / "averaged.keras"
        self.lock_file = self.path / ".lock"
        self.history_file = self.path / "history.csv"
        self.results_file = self.path / "results.json"
        self.logs = self.path / "logs"
        self.report_file = self.path / "report.html"

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.resolve().name

    def config(self) -> RunConfig:
        """Reads the options of the run. Raises `RunError` if the folder holds no run."""
        if not self.config_file.exists():
            raise RunError(
                f"{self.path} is not the folder of a run: it has no file {self.config_file.name}"
            )
        return load_config(self.config_file, is_run=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Context manager that locks the folder, so that no second process trains in it.

        The folder is created if it is missing. The operating system releases the lock even if the
        process is killed. If no run is started within the context, the lock file and the created
        folders are removed.

        Raises:
            RunError: Another process holds the lock, or the path is a file.
        """
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"--run must be a folder, not a file. Received: {self.path}")
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.lock_file, wait=False))
            except BlockingIOError:
                raise RunError(
                    f"another process is training in {self.path}; wait until it ends"
                ) from None
            try:
                yield
            finally:
                self._remove_if_unused(missing)

    def _remove_if_unused(self, missing: Sequence[Path]) -> None:
        if self.config_file.exists():
            return
        with contextlib.suppress(OSError):  # the folder was removed, or other files are in it
            self.lock_file.unlink()
            for path in missing:
                path.rmdir()

    @property
    def is_trained(self) -> bool:
        """Whether the folder holds a model or a checkpoint."""
        return self.model_file.exists() or bool(CheckpointStore(self.checkpoints).steps())

    def check(self, config: RunConfig) -> None:
        """Checks that the folder is empty or contains a run with the same options.

        A run that is not trained yet may get other options. Its vocabulary files are then removed.

        Raises:
            RunError: The folder holds other files, or a run with other options.
        """
        if self.config_file.exists():
            if self.is_trained:
                self._check_same(config)
            else:
                for name in {name for one in CONFIGS for name in one.word_files}:
                    (self.path / name).unlink(missing_ok=True)
        elif any(path != self.lock_file for path in self.path.iterdir()):
            raise RunError(
                f"{self.path} holds files but no run; give --run a new or an empty folder"
            )

    def write_config(self, config: RunConfig) -> None:
        """Writes all options. The value "auto" is replaced by the value that it stands for."""
        replace_file(self.config_file, config.resolved().to_toml())

    def changes(self) -> list[dict[str, Any]]:
        """Returns the options that were changed when the run was resumed, see `TrainingState`."""
        state = CheckpointStore(self.checkpoints).last_state()
        return state.get("training", {}).get("changes", [])

    def check_unedited(self, config: RunConfig) -> None:
        """Raises `RunError` if `config.toml` was edited after its checkpoints were made.

        Options that may change when a run is resumed are not checked. Checkpoints of old versions
        do not contain the options, and are not checked either.
        """
        state = CheckpointStore(self.checkpoints).last_state()
        if "options" in state:
            self._refuse_edited(option_changes(config, state["options"]))

    def _check_same(self, config: RunConfig) -> None:
        before = self.config()
        state = CheckpointStore(self.checkpoints).last_state()
        options = state.get("options", recorded_options(before))
        changes = _refused(option_changes(config, options))
        if not changes:
            return
        edited = option_changes(before, options)
        if all(change in edited for change in changes):
            self._refuse_edited(changes)
        raise RunError(
            f"{self.path} holds a run with other options ({_listed(changes)}); "
            "give --run another folder, or resume that run with its own options: "
            f"keras-drill train --run {self.path}"
        )

    def _refuse_edited(self, changes: Sequence[OptionChange]) -> None:
        if changes := _refused(changes):
            raise RunError(
                f"{self.config_file} has other options than the checkpoints of the run "
                f"({_listed(changes)}); write the values of the checkpoints into the file, or "
                "train with the new values in another folder: "
                f"keras-drill train {self.config_file} --run FOLDER"
            )


def _refused(changes: Sequence[OptionChange]) -> list[OptionChange]:
    return [change for change in changes if not change.is_allowed]


def _listed(changes: Sequence[OptionChange]) -> str:
    return "; ".join(map(str, changes))


def write_history(path: str | os.PathLike, history: Sequence[dict[str, float]]) -> None:
    """Writes a CSV file with one line per epoch. An existing file is replaced atomically.

    Metrics that an epoch does not have are empty.
    """
    table = io.StringIO()
    names = dict.fromkeys(name for values in history for name in values)
    writer = csv.DictWriter(table, ["epoch", *names], lineterminator="\n")
    writer.writeheader()
    for epoch, values in enumerate(history, start=1):
        writer.writerow({"epoch": epoch, **values})
    replace_file(path, table.getvalue())


def read_history(path: str | os.PathLike) -> dict[str, list[float]]:
    """Reads the columns of a history by name, without the epoch. Empty values become NaN.

    Example:

    >>> path = getfixture("tmp_path") / "history.csv"
    >>> write_history(path, [{"loss": 2.0}, {"loss": 1.5}])
    >>> read_history(path)
    {'loss': [2.0, 1.5]}
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        return {
            name: [float(row[name] or "nan") for row in rows] for name in rows[0] if name != "epoch"
        }
    except (IndexError, TypeError, ValueError, csv.Error) as error:
        raise RunError(
            f"{path} is damaged ({error}); resume the training to write it again"
        ) from None
