"""Trainer: trains a model on the examples and exports it for a server."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError
from keras_drill.workbench.training.export_run import export_run
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.train_run import train_run
from pipelines.components.training_settings import training_settings
from pipelines.components.tuner import best_options
from pipelines.components.warm_start import WARM_START, blessed_before
from pipelines.engine.artifact_store import Artifact, ArtifactStore
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import TrainerOptions

RUN, SERVING = "run", "serving"


class Trainer(Component):
    """Trains a model by a recipe, as `keras-drill train` does, and exports the best model.

    The artifact contains the training run in `run/`, with its report, and the SavedModel in
    `serving/1/`. An interrupted training run resumes from its last checkpoint. Two training runs on
    the same examples have equal weights, but their files differ in dates and times.

    Args:
        config: The options of the run. The component sets `data.path`.
        options: The options of the component.
        warm_start: Whether training starts from the last blessed model, if there is one.
        tuned: Whether to use the options that the component `Tuner` found.
    """

    name = "Trainer"
    version = 1
    reads: tuple[str, ...] = ("examples", "transformed")
    writes = "model"
    keeps_work = True

    def __init__(
        self,
        config: RunConfig,
        options: TrainerOptions = TrainerOptions(),  # noqa: B008
        warm_start: bool = False,
        tuned: bool = False,
    ):
        super().__init__(options)
        self.config = config
        if tuned:
            self.reads = (*self.reads, "hyperparameters")
        self.warm_start = warm_start
        if warm_start and config.training.start_from:
            raise ConfigError("give --warm-start or --training.start_from, not both")

    def resolve(self, store: ArtifactStore, made: Mapping[str, Artifact]) -> dict[str, Artifact]:
        return blessed_before(store, made) if self.warm_start else {}

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **training_settings(self.config)}

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        config = self.config.replace({"data.path": str(inputs["transformed"].resolve())})
        if "hyperparameters" in inputs:
            config = config.replace(best_options(inputs["hyperparameters"]))
        if WARM_START in inputs:
            start = (inputs[WARM_START] / RUN).resolve()
            config = config.replace({"training.start_from": str(start)})
        folder = RunFolder(output / RUN)
        train_run(config, folder)
        shutil.rmtree(output / SERVING, ignore_errors=True)  # left by a killed process
        export_run(
            LoadedRun.load(folder),
            output / SERVING,
            version=1,
            weights=self.options.weights,
            sense_contexts=self.options.sense_contexts,
            data=str(inputs["examples"]),
        )
        shutil.rmtree(folder.checkpoints, ignore_errors=True)
        folder.lock_file.unlink()
        results = json.loads(folder.results_file.read_text(encoding="utf-8"))
        names = ("best_epoch", "valid_perplexity", "test_perplexity")
        facts = {name.replace("_", " "): results[name] for name in names if results.get(name)}
        facts |= results.get("scores", {})
        return {
            key: round(value, 3) if isinstance(value, float) else value
            for key, value in facts.items()
        }

    def sections(self, artifact: Path) -> list[ElementTree.Element]:
        results = json.loads((artifact / RUN / "results.json").read_text(encoding="utf-8"))
        figures = {**results, **results.pop("scores", {})}
        rows = [
            [name.replace("_", " "), _shown(value)]
            for name, value in figures.items()
            if value is not None and not isinstance(value, bool)
        ]
        link = f"../../artifacts/{artifact.parent.name}/{artifact.name}/{RUN}/report.html"
        return [
            element(
                "section",
                element("h2", "Training"),
                element("p", element("a", "The report of the training", href=link)),
                table("Metrics of the best model", ["figure", "value"], rows),
            )
        ]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def serving_folder(model: Path) -> Path:
    """Returns the path of the SavedModel in an artifact of `Trainer`."""
    return model / SERVING / "1"
