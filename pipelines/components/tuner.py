"""Tuner: searches for the options with the lowest validation perplexity."""

import importlib.util
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from keras_drill.data.atomic import replace_file
from keras_drill.workbench.report.page.elements import element, table
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.errors import ConfigError, Diverged
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.run_folder import RunFolder
from keras_drill.workbench.training.train_run import train_run
from pipelines.components.search_space import Searched
from pipelines.components.training_settings import training_settings
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import TunerOptions

BEST, TRIALS = "best.json", "trials.json"
_OBJECTIVE = "valid_perplexity"


class Tuner(Component):
    """Trains models with options that keras-tuner proposes, and selects the best options.

    The artifact contains the values with the lowest validation perplexity in `best.json`, and all
    trials in `trials.json`. An interrupted search repeats its proposals from the recorded results
    and resumes the interrupted trial. A training run that diverges is a trial without a result.

    Args:
        config: The options of the run. The search replaces the options that it varies.
        options: The search space and the number of trials.
    """

    name = "Tuner"
    version = 1
    reads = ("transformed",)
    writes = "hyperparameters"
    keeps_work = True

    def __init__(self, config: RunConfig, options: TunerOptions):
        super().__init__(options)
        if importlib.util.find_spec("keras_tuner") is None:
            raise ConfigError("tuner.search needs keras-tuner: pip install 'keras-drill[tuner]'")
        if options.epochs:
            config = config.replace({"training.epochs": options.epochs})
        self.config = config
        self.searched = [Searched.parse(text, config) for text in options.search]
        _check_names(self.searched, config)

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **training_settings(self.config)}

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        config = self.config.replace({"data.path": str(inputs["transformed"].resolve())})
        trials_file, runs = output / TRIALS, output / "runs"
        known = json.loads(trials_file.read_text("utf-8")) if trials_file.exists() else []
        trials: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as scratch:
            oracle = self._oracle(scratch)
            for number in range(self.options.trials):
                progress(number, "trials", self.options.trials)
                trial = oracle.create_trial("tuner")
                if trial.status == "STOPPED":  # all combinations of values are tried
                    break
                values = dict(trial.hyperparameters.values)
                if number < len(known):
                    trials.append(known[number])
                else:
                    perplexity = _perplexity(config.replace(values), runs / str(number))
                    trials.append({"values": values, _OBJECTIVE: perplexity})
                    replace_file(trials_file, json.dumps(trials, indent=1) + "\n")
                shutil.rmtree(runs, ignore_errors=True)
                _report_trial(oracle, trial, trials[-1][_OBJECTIVE])
        finished = [trial for trial in trials if trial[_OBJECTIVE] is not None]
        if not finished:
            raise ConfigError(
                "all training runs of the search diverged; search smaller values of "
                "optimizer.learning_rate"
            )
        best = min(finished, key=lambda trial: trial[_OBJECTIVE])
        replace_file(output / BEST, json.dumps(best["values"], indent=1) + "\n")
        return {"trials": len(trials), "best perplexity": round(best[_OBJECTIVE], 3)} | {
            name.rpartition(".")[2]: value for name, value in best["values"].items()
        }

    def _oracle(self, scratch: str) -> Any:
        """Makes the keras-tuner oracle that proposes values, the same ones for the same results."""
        import keras_tuner

        space = keras_tuner.HyperParameters()
        for searched in self.searched:
            searched.add_to(space)
        kind = {
            "random": keras_tuner.oracles.RandomSearchOracle,
            "bayesian": keras_tuner.oracles.BayesianOptimizationOracle,
        }[self.options.method]
        oracle = kind(
            objective=keras_tuner.Objective(_OBJECTIVE, "min"),
            max_trials=self.options.trials,
            hyperparameters=space,
            seed=self.options.seed,
            max_consecutive_failed_trials=self.options.trials + 1,
        )
        oracle.verbose = 0
        oracle._set_project_dir(scratch, "search")
        return oracle

    def sections(self, artifact: Path) -> list[ElementTree.Element]:
        trials = json.loads((artifact / TRIALS).read_text("utf-8"))
        names = list(trials[0]["values"])
        ordered = sorted(trials, key=lambda trial: trial[_OBJECTIVE] or float("inf"))
        rows = [
            [*map(_shown, (trial["values"][name] for name in names)), _shown(trial[_OBJECTIVE])]
            for trial in ordered
        ]
        shown = table("Trials, the best first", [*names, "validation perplexity"], rows)
        return [element("section", element("h2", "Tuning"), shown)]


def _shown(value: Any) -> str:
    if value is None:
        return "diverged"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def best_options(hyperparameters: Path) -> dict[str, Any]:
    """Reads the best values from an artifact of `Tuner`, by the full names of the options."""
    return json.loads((hyperparameters / BEST).read_text("utf-8"))


def _check_names(searched: list[Searched], config: RunConfig) -> None:
    names = [each.name for each in searched]
    if len(set(names)) < len(names):
        raise ConfigError(f"tuner.search names an option twice: {', '.join(names)}")
    words = make_task(config).word_settings()
    if "data.path" in names:
        raise ConfigError("tuner.search cannot have data.path: all trials must use the same text")
    for each in searched:
        tasks = [make_task(config.replace({each.name: value})) for value in each.values]
        if any(task.word_settings() != words for task in tasks):
            raise ConfigError(
                f"tuner.search cannot have {each.name}: the vocabulary depends on this option and "
                "is learned before the search"
            )


def _perplexity(config: RunConfig, folder: Path) -> float | None:
    """Trains a model and returns its best validation perplexity; `None` if training diverged."""
    run = RunFolder(folder)
    try:
        train_run(config, run)
    except Diverged:
        return None
    return json.loads(run.results_file.read_text(encoding="utf-8"))[_OBJECTIVE]


def _report_trial(oracle: Any, trial: Any, perplexity: float | None) -> None:
    if perplexity is None:
        trial.status = "INVALID"
    else:
        oracle.update_trial(trial.trial_id, {_OBJECTIVE: perplexity})
        trial.status = "COMPLETED"
    oracle.end_trial(trial)
