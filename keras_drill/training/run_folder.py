"""The folder of one run."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from keras_drill.data.atomic import replace_file
from keras_drill.training.config import RunConfig, load_config
from keras_drill.training.run_error import RunError

_LOCK = ".lock"


class RunFolder:
    """Where a run keeps its files.

        config.toml      the options, all of them
        vocabulary.txt   one word per line (and vocabulary.counts, how often each occurs)
        checkpoints/     what `keras-drill train` resumes from
        model.keras      the best model
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
        self.vocabulary_file = self.path / "vocabulary.txt"
        self.checkpoints = self.path / "checkpoints"
        self.model_file = self.path / "model.keras"
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
        with open(self.path / _LOCK, "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(f"another process is training in {self.path}") from None
            yield

    def check(self, config: RunConfig) -> None:
        """Makes sure that the folder is empty or holds this very run."""
        if self.config_file.exists():
            self._check_same(config)
        elif any(path.name != _LOCK for path in self.path.iterdir()):
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
        if changed:
            raise RunError(
                f"{self.path} holds a run with other options ({'; '.join(changed)}); "
                "give --run another folder, or resume that run with its own options: "
                f"keras-drill train --run {self.path}"
            )
