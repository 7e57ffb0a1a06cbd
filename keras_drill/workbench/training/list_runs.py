"""List of the runs in a folder, with their progress and perplexities."""

import dataclasses
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from keras_drill.data.file_lock import file_lock
from keras_drill.data.read_json import read_json
from keras_drill.workbench.report.page.formatting import text_table
from keras_drill.workbench.tasks.errors import ConfigError, RunError
from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.run_folder import RunFolder


@dataclasses.dataclass(frozen=True)
class ListedRun:
    """One run in a list.

    Args:
        path: folder of the run.
        state: "new" (not trained yet), "training" (a process trains it now), "interrupted" (not
            finished, and no process trains it), "finished" (all epochs are done), "stopped" (early,
            by `training.patience`) or "damaged" (a file cannot be read).
        description: description of the run, which comes from its recipe.
        output_layer: description of the run's output layer.
        epochs: number of finished epochs.
        max_epochs: maximum number of epochs.
        best_valid: the best validation perplexity so far.
        test: the test perplexity of the evaluated model.
    """

    path: Path
    state: str
    description: str = ""
    output_layer: str = ""
    epochs: int = 0
    max_epochs: int = 0
    best_valid: float | None = None
    test: float | None = None

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.path.resolve().name


def list_runs(folder: str | os.PathLike = "runs") -> list[ListedRun]:
    """Lists the runs in a folder and its subfolders of any depth, sorted by path.

    Only small files are read, and no model is loaded.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RunError(f"the folder that contains the runs must exist. Received: {folder}")
    configs = sorted(folder.glob("**/config.toml"))
    return [_listed(RunFolder(config.parent)) for config in configs]


def runs_table(runs: Sequence[ListedRun]) -> str:
    """Formats a list of runs as a table for the terminal.

    Example:

    >>> print(runs_table([ListedRun(Path("runs/a"), "finished", "", "softmax", 3, 3, 65.8)]))
    run     state     output layer  epochs  best valid ppl  test ppl
    runs/a  finished  softmax          3/3           65.80         -
    """
    header = ("run", "state", "output layer", "epochs", "best valid ppl", "test ppl")
    rows: list[tuple[str, ...]] = [header]
    for run in runs:
        figures = ("-" if value is None else f"{value:.2f}" for value in (run.best_valid, run.test))
        rows.append(
            (
                str(run.path),
                run.state,
                run.output_layer or "-",
                f"{run.epochs}/{run.max_epochs}",
                *figures,
            )
        )
    return text_table(rows, left=3)


def _listed(folder: RunFolder) -> ListedRun:
    """Reads the state and the perplexities of one run."""
    try:
        config = folder.config()
    except (ConfigError, RunError, OSError):
        return ListedRun(folder.path, "damaged")
    listed = ListedRun(
        folder.path,
        "new",
        description=config.description,
        output_layer=config.output_layer,
        max_epochs=config.training.epochs,
    )
    try:
        progress = CheckpointStore(folder.checkpoints).progress()
        figures = {}
        if folder.results_file.exists():
            figures = read_json(folder.results_file)
        test = figures.get("test_perplexity")
        whole = isinstance(test, float | None)
        whole &= not folder.model_file.exists() or zipfile.is_zipfile(folder.model_file)
    except (RunError, OSError, ValueError):
        whole = False
    if not whole:
        return dataclasses.replace(listed, state="damaged")
    if progress is None:
        return dataclasses.replace(listed, state="training") if _is_locked(folder) else listed
    best_valid = None
    if progress.best_epoch:
        best_valid = progress.history[progress.best_epoch - 1]["val_perplexity"]
    if _is_locked(folder):
        state = "training"
    elif progress.epoch >= config.training.epochs:
        state = "finished"
    elif progress.has_stopped_improving(config):
        state = "stopped"
    else:
        state = "interrupted"
    return dataclasses.replace(
        listed,
        state=state,
        epochs=progress.epoch,
        best_valid=best_valid,
        test=test,
    )


def _is_locked(folder: RunFolder) -> bool:
    """Returns whether another process trains in the folder now."""
    if not folder.lock_file.exists():
        return False
    try:
        with file_lock(folder.lock_file, wait=False):
            return False
    except BlockingIOError:
        return True
