"""Compares label encoders by size, text and optimizer: a search for each, then several seeds.

    python -m benchmarks.label_encoder_study --data ptb --folder runs/encoders \\
        [--shares 0.1 0.3 1] [--size small] [--optimizer adam] [--trials 8] [--seeds 3] \\
        [--multiplier 0.001]

Tied, bilinear, dual and DRILL get the same number of trials. A trial draws the learning rate and
the strength of dropout in the same way for all, and the options of the label encoder: depth,
activation, dropout, residuals and its learning rate multiplier. The trial with the lowest
validation perplexity is trained with more seeds. A share is a part of the training text, from its
beginning, with its own vocabulary.

The same command resumes an interrupted study, and more trials or seeds extend it. After each run,
tables with means and half the width of 95 % intervals over seeds are written to FOLDER.
"""

import argparse
import dataclasses
import json
import random
from collections.abc import Sequence
from pathlib import Path

from benchmarks.compare_recipes import markdown, mean_and_interval, train

FAMILIES = ("tied", "bilinear", "dual", "drill")
SIZES: dict[str, dict[str, object]] = {
    "small": {},
    "medium": {"backbone.embedding_dim": 256, "backbone.units": 512},
}
_ADAM: dict[str, object] = {
    "optimizer.kind": "adam",
    "optimizer.learning_rate": 0.005,
    "optimizer.clip_norm": 1.0,
}
_SGD = {"optimizer.kind": "sgd", "optimizer.learning_rate": 20.0, "optimizer.clip_norm": 0.25}
_HALVED = {"optimizer.validation_decay": 0.5, "optimizer.validation_patience": 2}
OPTIMIZERS: dict[str, dict[str, object]] = {
    "adam": _ADAM,
    "adam-halved": {**_ADAM, **_HALVED},
    "adam-cosine": {**_ADAM, "optimizer.schedule": "cosine"},
    "sgd-halved": {**_SGD, **_HALVED},
    "sgd-cosine": {**_SGD, "optimizer.schedule": "cosine"},
    "nt-asgd": {**_SGD, "optimizer.kind": "nt-asgd"},
}
_MULTIPLIER = 0.001  # which Adam wants; the recipe, for SGD, has a larger one
_LEARNING_RATES = {"adam": (0.001, 0.01), "sgd": (5.0, 40.0), "nt-asgd": (5.0, 40.0)}  # by kind
# Of the recipes `small-*`; a trial multiplies them all.
_DROPOUTS = {
    "backbone.dropout": 0.3,
    "backbone.hidden_dropout": 0.2,
    "backbone.input_dropout": 0.3,
    "backbone.embedding_dropout": 0.1,
    "backbone.weight_dropout": 0.2,
}
_BINS = (1, 10, 50, 250, 1000)  # where bins of training counts begin


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a folder with train, valid and test text")
    parser.add_argument("--folder", required=True, type=Path, help="where the runs are kept")
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3, 1.0])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adam")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--trials", type=int, default=8, help="how many each label encoder gets")
    parser.add_argument("--seeds", type=int, default=3, help="of each one's best trial, up to 6")
    parser.add_argument("--epochs", type=int, default=60, help="most epochs")
    parser.add_argument(
        "--patience", type=int, default=4, help="epochs without improvement; 0: all epochs"
    )
    parser.add_argument(
        "--multiplier", type=float, default=_MULTIPLIER, help="of DRILL's steps in its first trial"
    )
    args = parser.parse_args(argv)
    for share in args.shares:
        study = Study(args, share)
        for trial in range(args.trials):
            for family in args.families:
                study.run(family, trial, seed=0)
        for seed in range(1, args.seeds):
            for family in args.families:
                study.run(family, study.best_trial(family), seed)
        print(f"\n{study.folder}\n\n{study.tables()}", flush=True)


def draw_options(
    family: str, trial: int, size: str, optimizer: str, multiplier: float = _MULTIPLIER
) -> dict[str, object]:
    """The options of a trial, the same for the same arguments; trial 0 is the recipe's own model,
    but for DRILL's steps.

    Example:

    >>> draw_options("tied", 0, "small", "sgd-cosine")["optimizer.schedule"]
    'cosine'
    >>> draw_options("drill", 0, "small", "adam")["head.learning_rate_multiplier"]
    0.001
    >>> draw_options("drill", 1, "small", "adam") == draw_options("drill", 1, "small", "adam")
    True
    """
    options = {**SIZES[size], **OPTIMIZERS[optimizer]}
    if trial == 0:
        if family == "drill":
            options["head.learning_rate_multiplier"] = multiplier
        return options
    rng = random.Random(f"{family} {trial} {optimizer}")
    low, high = _LEARNING_RATES[str(options["optimizer.kind"])]
    options["optimizer.learning_rate"] = float(f"{low * (high / low) ** rng.random():.3g}")
    strength = rng.choice([0.5, 1.0, 1.5])
    options |= {name: round(strength * rate, 3) for name, rate in _DROPOUTS.items()}
    if family == "drill":
        options |= {
            "head.depth": rng.choice([1, 2, 4]),
            "head.activation": rng.choice(["sigmoid", "tanh", "relu"]),
            "head.dropout": rng.choice([0.0, 0.2, 0.4, 0.6]),
            "head.variational_dropout": rng.choice(["true", "false"]),
            "head.residual_to_previous": rng.choice(["true", "false"]),
            "head.learning_rate_multiplier": rng.choice([1.0, 0.1, 0.01, 0.001]),
        }
    if family == "dual":
        options["head.activation"] = rng.choice(["tanh", "relu"])
        options["head.units"] = rng.choice([128, 256])
    if family in ("bilinear", "dual"):
        options["head.learning_rate_multiplier"] = rng.choice([1.0, 0.1, 0.01, 0.001])
    return options


@dataclasses.dataclass(frozen=True)
class Trial:
    """One trained run of a study, in a folder FAMILY-TRIAL-SEED.

    DRILL's is drill@MULTIPLIER where its first trial has another multiplier than usual.
    """

    folder: Path

    @property
    def number(self) -> int:
        return int(self.folder.name.split("-")[1])

    @property
    def results(self) -> dict:
        return json.loads((self.folder / "results.json").read_text())

    def cross_entropies(self) -> dict[str, float]:
        """Nats per token of the test text, by the word's training count; computed once."""
        from keras_drill.data.atomic import replace_file

        file = self.folder / "by_frequency.json"
        if not file.exists():
            replace_file(file, json.dumps(_cross_entropies(self.folder)))
        return json.loads(file.read_text())


def _cross_entropies(folder: Path) -> dict[str, float]:
    import numpy as np

    from keras_drill.workbench.analysis import collect_log_probs, compare_by_frequency
    from keras_drill.workbench.training.loaded_run import LoadedRun
    from keras_drill.workbench.training.run_folder import RunFolder

    run = LoadedRun.load(RunFolder(folder))
    batches = run.task.evaluation_batches(run.vocabulary, run.evaluation_texts()[-1].encoded)
    targets, log_probs = collect_log_probs(run.model, batches.dataset())
    counts = np.array(run.vocabulary.counts)
    bins = compare_by_frequency(targets, log_probs, log_probs, counts, _BINS, resamples=1).bins
    return {each.label: each.cross_entropy_a for each in bins if each.tokens}


class Study:
    """All runs with one part of a text, one size and one optimizer."""

    def __init__(self, args: argparse.Namespace, share: float):
        self.args = args
        self.folder = args.folder / f"{args.size}-{args.optimizer}-{share:g}"
        self.text = _share_of_text(args.data, share, args.folder / f"text-{share:g}")

    def run(self, family: str, trial: int, seed: int) -> None:
        options = {
            "data.tokenizer": "whitespace",
            "data.min_count": 1,
            "training.epochs": self.args.epochs,
            "training.patience": self.args.patience,
            "training.keep_checkpoints": 1,
            "training.average_checkpoints": 0,
            "training.tensorboard": "false",
            "training.seed": seed,
            "optimizer.validation_decay": 1.0,
            **self._draw_options(family, trial),
        }
        folder = self.folder / f"{self._name(family)}-{trial}-{seed}"
        words = [f"{name}={value}" for name, value in options.items()]
        train(f"small-{family}", str(self.text), folder, words)
        self.tables()

    def trials(self, family: str) -> list[Trial]:
        """All that have been trained with seed 0."""
        found = self.folder.glob(f"{self._name(family)}-*-0/results.json")
        return [Trial(results.parent) for results in sorted(found)]

    def best_trial(self, family: str) -> int:
        """The one with the least validation perplexity."""
        return min(self.trials(family), key=lambda trial: trial.results["valid_perplexity"]).number

    def seeds(self, family: str) -> list[Trial]:
        """The best trial with all its seeds."""
        name = f"{self._name(family)}-{self.best_trial(family)}"
        found = self.folder.glob(f"{name}-*/results.json")
        return [Trial(results.parent) for results in sorted(found)]

    def tables(self) -> str:
        """Writes the tables as far as the study has come, and returns them."""
        from keras_drill.data.atomic import replace_file

        seeds = {name: self.seeds(name) for name in self.args.families if self.trials(name)}
        rows = [["label encoder", "trials", "best one's options", "seeds", "validation", "test"]]
        for family, runs in seeds.items():
            options = self._draw_options(family, runs[0].number)
            of_all = {**SIZES[self.args.size], **OPTIMIZERS[self.args.optimizer]}
            own = {name: value for name, value in options.items() if of_all.get(name) != value}
            figures = [
                mean_and_interval([run.results[f"{split}_perplexity"] for run in runs])
                for split in ("valid", "test")
            ]
            shown = ", ".join(f"{name.split('.')[1]} {value}" for name, value in own.items())
            rows.append([family, str(len(self.trials(family))), shown, str(len(runs)), *figures])
        tables = [markdown(rows)]
        if "tied" in seeds:
            tables.append(_savings(seeds))
        text = "\n\n".join(tables)
        replace_file(self.folder / "tables.md", text + "\n")
        return text

    def _draw_options(self, family: str, trial: int) -> dict[str, object]:
        return draw_options(
            family, trial, self.args.size, self.args.optimizer, self.args.multiplier
        )

    def _name(self, family: str) -> str:
        own = family == "drill" and self.args.multiplier != _MULTIPLIER
        return f"{family}@{self.args.multiplier:g}" if own else family


def _savings(seeds: dict[str, list[Trial]]) -> str:
    """Nats per token that each family saves over tied, by training count, seed by seed."""
    entropies = {name: [run.cross_entropies() for run in runs] for name, runs in seeds.items()}
    tied = entropies.pop("tied")
    labels = list(tied[0])
    rows = [["nats saved over tied, words seen", *labels]]
    for family, of_family in entropies.items():
        pairs = list(zip(tied, of_family, strict=False))  # seeds that both have
        savings = [mean_and_interval([a[bin] - b[bin] for a, b in pairs], 3) for bin in labels]
        rows.append([family, *savings])
    return markdown(rows)


def _share_of_text(data: str, share: float, folder: Path) -> Path:
    from keras_drill.data import Corpus
    from keras_drill.data.atomic import replace_file

    if (folder / "test.txt").exists():
        return folder
    corpus = Corpus(data)
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(corpus.train)
    parts = {"train": lines[: round(share * len(lines))], "valid": corpus.valid}
    for name, part in {**parts, "test": corpus.test}.items():
        replace_file(folder / f"{name}.txt", b"".join(line + b"\n" for line in part).decode())
    return folder


if __name__ == "__main__":
    main()
