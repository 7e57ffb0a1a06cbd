"""The folder of one run, and the table of its epochs."""

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
    """Where a run keeps its files.

        config.toml      the options, all of them
        vocabulary.txt   one word per line (and vocabulary.counts, how often each occurs), or what
                         else the task keeps of its words
        checkpoints/     what `keras-drill train` resumes from
        model.keras      the best model
        averaged.keras   the mean of the last checkpoints, where it is asked for and better
        history.csv      one line per epoch
        results.json     figures of the best model
        logs/            curves for TensorBoard
        report.html      the report

    Args:
        path: the folder; made by `lock`.
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
        """The options that the run was started with."""
        if not self.config_file.exists():
            raise RunError(
                f"{self.path} is not the folder of a run: there is no {self.config_file.name} in it"
            )
        return load_config(self.config_file, is_run=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps a second process from training here; let go by the system even after a kill.

        Where no run was begun meanwhile the folder is left as it was, or removed again.
        """
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"--run must be a folder, and {self.path} is a file")
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.lock_file, wait=False))
            except BlockingIOError:
                raise RunError(f"another process is training in {self.path}") from None
            try:
                yield
            finally:
                self._remove_if_unused(missing)

    def _remove_if_unused(self, missing: Sequence[Path]) -> None:
        if self.config_file.exists():
            return
        with contextlib.suppress(OSError):  # the folder has vanished, or others write to it
            self.lock_file.unlink()
            for path in missing:
                path.rmdir()

    @property
    def is_trained(self) -> bool:
        """Whether there is anything in the folder that training has made."""
        return self.model_file.exists() or bool(CheckpointStore(self.checkpoints).steps())

    def check(self, config: RunConfig) -> None:
        """Makes sure that the folder is empty or holds this very run.

        One in which nothing was trained may be taken for a run with other options: words that it
        has counted are removed.
        """
        if self.config_file.exists():
            if self.is_trained:
                self._check_same(config)
            else:
                for name in {name for one in CONFIGS for name in one.word_files}:
                    (self.path / name).unlink(missing_ok=True)
        elif any(path != self.lock_file for path in self.path.iterdir()):
            raise RunError(
                f"{self.path} holds files that are no run; give --run a new or an empty folder"
            )

    def write_config(self, config: RunConfig) -> None:
        """Writes the options, those that others decide with the value that they have."""
        replace_file(self.config_file, config.resolved().to_toml())

    def changes(self) -> list[dict[str, Any]]:
        """Options that were changed when the run was resumed; see `TrainingState`."""
        state = CheckpointStore(self.checkpoints).last_state()
        return state.get("training", {}).get("changes", [])

    def check_unedited(self, config: RunConfig) -> None:
        """Makes sure that options of the run are those that its checkpoints were made with.

        Checkpoints of old versions do not tell theirs: any option is taken then.
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
                f"{self.config_file} has other options than the checkpoints of the run were made "
                f"with ({_listed(changes)}); write the values of the checkpoints into the file, or "
                f"train with the new ones in another folder: keras-drill train {self.config_file} "
                "--run FOLDER"
            )


def _refused(changes: Sequence[OptionChange]) -> list[OptionChange]:
    return [change for change in changes if not change.is_allowed]


def _listed(changes: Sequence[OptionChange]) -> str:
    return "; ".join(map(str, changes))


def write_history(path: str | os.PathLike, history: Sequence[dict[str, float]]) -> None:
    """Writes one line per epoch, by rename. What an epoch does not know is left empty."""
    table = io.StringIO()
    names = dict.fromkeys(name for values in history for name in values)
    writer = csv.DictWriter(table, ["epoch", *names], lineterminator="\n")
    writer.writeheader()
    for epoch, values in enumerate(history, start=1):
        writer.writerow({"epoch": epoch, **values})
    replace_file(path, table.getvalue())


def read_history(path: str | os.PathLike) -> dict[str, list[float]]:
    """Reads the columns, without the epoch; what is left empty is NaN.

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
        raise RunError(f"{path} is damaged ({error}); training on writes it anew") from None
