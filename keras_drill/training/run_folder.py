"""The folder of one run, and the table of its epochs."""

import contextlib
import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from keras_drill.data.atomic import replace_file
from keras_drill.data.file_lock import file_lock
from keras_drill.tasks.config import RunConfig
from keras_drill.tasks.errors import RunError
from keras_drill.tasks.load_config import CONFIGS, load_config
from keras_drill.training.checkpoints import CheckpointStore


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
        return load_config(self.config_file)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps a second process from training here; let go by the system even after a kill."""
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"--run must be a folder, and {self.path} is a file")
        self.path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.lock_file, wait=False))
            except BlockingIOError:
                raise RunError(f"another process is training in {self.path}") from None
            yield

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
        """Writes the options."""
        replace_file(self.config_file, config.to_toml())

    def _check_same(self, config: RunConfig) -> None:
        before = self.config()
        now, then = config.to_mapping(), before.to_mapping()
        changed = []
        for name in config.differences(before):
            section, key = name.split(".")
            if not config.options()[name].metadata["may_change"]:
                changed.append(f"{name} is {then[section][key]!r} there, not {now[section][key]!r}")
            elif name == "training.epochs" and config.optimizer.ends_with_last_epoch:
                changed.append(
                    f"{name} is {then[section][key]!r} there, not {now[section][key]!r}, and "
                    f"optimizer.schedule = {config.optimizer.schedule!r} without "
                    "optimizer.decay_steps ends there"
                )
        if changed:
            raise RunError(
                f"{self.path} holds a run with other options ({'; '.join(changed)}); "
                "give --run another folder, or resume that run with its own options: "
                f"keras-drill train --run {self.path}"
            )


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
