"""Trains a small language model with all its seeds at once, as one program on the JAX backend.

    KERAS_BACKEND=jax python -m benchmarks.seeds_at_once --data ptb --folder runs/at-once \\
        --recipe small-drill --options head.learning_rate_multiplier=0.1 [--seeds 0 1 2] \\
        [--epochs 15] [--share 1]

A model of two layers of 256 units does not use a GPU fully: most of a step is the time to start
kernels. So `jax.vmap` runs the training step over the weights of several models with different
seeds. Model, batches and SGD are those of the recipe, with these differences: windows of text have
one length, the learning rate follows a cosine, and the last epoch is evaluated, without averaging.
Recipes with Adam, or with senses that a callback moves, raise an error.

The result is written to FOLDER after training. A command whose result exists does nothing. Without
`--recipe`, the tables of all results are printed: means, half the width of 95 % intervals, and nats
saved over `small-tied`, seed by seed. TensorFlow is not required.
"""

import argparse
import collections
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import keras
import numpy as np

from benchmarks.compare_recipes import markdown, mean_and_interval
from keras_drill.optimizers import WarmupSchedule
from keras_drill.workbench.analysis.bins import bin_ends, frequency_label
from keras_drill.workbench.tasks.language_model.build_model import build_model
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.tasks.load_config import load_config

_BINS = (1, 10, 50, 250, 1000)  # where bins of training counts begin
_OF_SGD = ("optimizer.learning_rate", "optimizer.clip_norm")
_END = "<eos>"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, type=Path, help="where the results are kept")
    parser.add_argument("--data", type=Path, help="a folder with train, valid and test text")
    parser.add_argument("--recipe", help="its name; none: print the tables")
    parser.add_argument("--options", nargs="*", default=[], metavar="section.key=value")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--share", type=float, default=1.0, help="part of the training text")
    args = parser.parse_args(argv)
    if args.recipe is None:
        print(tables(args.folder))
        return
    if args.data is None:
        parser.error("--recipe needs --data")
    name = "-".join([args.recipe, *args.options])
    file = args.folder / f"{name}.json"
    asked = {"seeds": args.seeds, "epochs": args.epochs, "share": args.share}
    if file.exists():
        found = json.loads(file.read_text())
        if any(found[key] != value for key, value in asked.items()):
            parser.error(f"--folder has a result of {name} for other {', '.join(asked)}")
        return
    options = dict(option.split("=", 1) for option in args.options)
    config = load_config(args.recipe).replace({**options, "data.variable_length": "false"})
    if config.optimizer.kind != "sgd" or config.head.has_senses:
        parser.error(f"--recipe must train with SGD and have no senses, not {args.recipe}")
    fixed = ("training.", "optimizer.", "data.variable_length")
    ignored = [key for key in options if key.startswith(fixed) and key not in _OF_SGD]
    if ignored:
        parser.error(f"--options cannot change what is the same for all here: {', '.join(ignored)}")
    text = Text(args.data, args.share)
    results = {**asked, **train(config, text, args.seeds, args.epochs, name)}
    args.folder.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(results, indent=1))
    os.replace(beside, file)


class Text:
    """A text that is cut into words already; each line ends in `<eos>`, which is a word.

    Attributes:
        splits: Int arrays `[N]`, the words' numbers, by split.
        counts: Int array `[V]`, how often training has each word.
    """

    def __init__(self, folder: Path, share: float = 1.0):
        lines = {name: _lines(folder, name) for name in ("train", "valid", "test")}
        lines["train"] = lines["train"][: round(share * len(lines["train"]))]
        words = {name: [w for line in some for w in line] for name, some in lines.items()}
        counts = collections.Counter(words["train"])
        counts.setdefault("<unk>", 0)
        numbers = {word: number for number, (word, _) in enumerate(counts.most_common())}
        self.counts = np.array([count for _, count in counts.most_common()])
        self.splits = {
            name: np.array([numbers.get(w, numbers["<unk>"]) for w in some], np.int32)
            for name, some in words.items()
        }
        self.end = numbers[_END]

    def windows(self, split: str, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Windows that follow one another in every row, and their targets, `[n, rows, length]`.

        Training leaves out what fills no window; other texts are filled up at their end.
        """
        ids = self.splits[split]
        if split == "train":
            steps = len(ids) // rows // length * length
            ids = ids[: rows * steps]
        else:
            steps = -(-len(ids) // (rows * length)) * length
            ids = np.pad(ids, (0, rows * steps - len(ids)), constant_values=self.end)
        targets = ids.reshape(rows, steps)
        before = np.concatenate([[self.end], targets[:-1, -1]])[:, None]
        tokens = np.concatenate([before, targets[:, :-1]], axis=1)
        cut = [x.reshape(rows, -1, length).swapaxes(0, 1) for x in (tokens, targets)]
        return cut[0].astype(np.int32), cut[1]


def _lines(folder: Path, split: str) -> list[list[str]]:
    (file,) = folder.glob(f"*{split}.txt")
    return [[*line.split(), _END] for line in file.read_text().splitlines()]


def train(
    config: LanguageModelConfig, text: Text, seeds: Sequence[int], epochs: int, name: str = ""
) -> dict:
    """Trains and evaluates models that differ by their seed.

    Returns:
        What a result's file holds: validation perplexities after each epoch and at its end, those
        of the test text, and its nats by training count; a list over seeds each.
    """
    begun = time.perf_counter()
    rows, length = config.data.batch_size, config.data.sequence_length
    batches = text.windows("train", rows, length)
    models = SeedModels(config, len(text.counts), seeds, epochs * len(batches[0]))
    held_out = {name: text.windows(name, rows, length) for name in ("valid", "test")}
    curve = []
    for epoch in range(epochs):
        models.train_epoch(*batches)
        curve.append(_perplexities(models, held_out["valid"], len(text.splits["valid"])))
        shown = ", ".join(f"{each:.1f}" for each in curve[-1])
        print(f"{name} {epoch + 1}: {shown}; {time.perf_counter() - begun:.0f} s", flush=True)
    count = len(text.splits["test"])
    log_probs = models.log_probs(*held_out["test"])[:, :count]
    seen = text.counts[text.splits["test"]]
    return {
        "validation_after_epoch": curve,
        "valid_perplexity": curve[-1],
        "test_perplexity": np.exp(-log_probs.mean(axis=1)).tolist(),
        "test_nats_by_count": {
            frequency_label(low, high): (-log_probs[:, here].mean(axis=1)).tolist()
            for low, high in bin_ends(_BINS)
            if (here := (seen >= low) & (seen < (high or np.inf))).any()
        },
        "seconds": time.perf_counter() - begun,
        "device": jax.devices()[0].device_kind,
        "versions": {"keras": keras.__version__, "jax": jax.__version__},
    }


def _perplexities(models: "SeedModels", windows: tuple, count: int) -> list[float]:
    return np.exp(-models.log_probs(*windows)[:, :count].mean(axis=1)).tolist()


class SeedModels:
    """Models of one configuration that differ by their seed, as one model and many states."""

    def __init__(
        self,
        config: LanguageModelConfig,
        vocabulary_size: int,
        seeds: Sequence[int],
        num_steps: int,
    ):
        rows, length = config.data.batch_size, config.data.sequence_length
        options = config.optimizer
        config = config.replace({"head.tile_size": rows * length})
        states = []
        for seed in seeds:
            self._model = build_model(
                config.replace({"training.seed": seed}), vocabulary_size, rows
            )
            self._model.compile(
                keras.optimizers.SGD(
                    WarmupSchedule(options.learning_rate, decay="cosine", decay_steps=num_steps),
                    global_clipnorm=options.clip_norm or None,
                )
            )
            self._model.optimizer.build(self._model.trainable_variables)
            states.append([[np.asarray(v) for v in some] for some in self._variables()])
        self._state = jax.tree.map(lambda *values: np.stack(values), *states)
        carried = {id(v) for v in self._model.backbone.state_variables}
        self._is_carried = [id(v) in carried for v in self._model.non_trainable_variables]
        self._train = jax.jit(self._train_windows, donate_argnums=0)
        self._evaluate = jax.jit(self._evaluate_windows)

    def _variables(self) -> list:
        model = self._model
        return [
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        ]

    def train_epoch(self, tokens: np.ndarray, targets: np.ndarray) -> None:
        """Takes a step for each window `[n, B, T]`, from a state of zeros."""
        self._state = self._train(self._begun(), tokens, targets)

    def log_probs(self, tokens: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Those of the targets, in the order of the text, `[seeds, n·B·T]`."""
        found = np.asarray(self._evaluate(self._begun(), tokens, targets))  # [n, seeds, B, T]
        return found.transpose(1, 2, 0, 3).reshape(found.shape[1], -1)

    def _begun(self) -> tuple:
        """The state, with zeros for what recurrent layers carry."""
        trained, others, *rest = self._state
        others = [
            np.zeros(value.shape, value.dtype) if is_carried else value
            for value, is_carried in zip(others, self._is_carried, strict=True)
        ]
        return trained, others, *rest

    def _train_windows(self, state, tokens, targets):
        def step(state, window):
            _, state = jax.vmap(self._model.train_step, in_axes=(0, None))(state, window)
            return state, None

        return jax.lax.scan(step, state, (tokens, targets))[0]

    def _evaluate_windows(self, state, tokens, targets):
        model = self._model

        def evaluate(trained, others, window):
            variables = [*model.trainable_variables, *model.non_trainable_variables]
            mapping = zip(variables, [*trained, *others], strict=True)
            with keras.StatelessScope(state_mapping=list(mapping)) as scope:
                hidden = model.backbone(window[0], training=False)
                log_probs = model.head.log_prob(hidden, window[1])
            return [scope.get_current_value(v) for v in model.non_trainable_variables], log_probs

        def step(others, window):
            return jax.vmap(evaluate, in_axes=(0, 0, None))(state[0], others, window)

        return jax.lax.scan(step, state[1], (tokens, targets))[1]


def tables(folder: Path) -> str:
    """Tables in Markdown of the results in a folder."""
    results = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
    rows = [["", "seeds", "validation", "test"]]
    for name, found in results.items():
        figures = [mean_and_interval(found[f"{split}_perplexity"]) for split in ("valid", "test")]
        rows.append([name, str(len(found["seeds"])), *figures])
    shown = [markdown(rows)]
    if "small-tied" in results:
        tied = results.pop("small-tied")["test_nats_by_count"]
        rows = [["nats saved over tied, words seen", *tied]]
        for name, found in results.items():
            nats = found["test_nats_by_count"]
            rows.append(
                [name]
                + [
                    mean_and_interval([a - b for a, b in zip(tied[of], nats[of], strict=True)], 3)
                    for of in tied
                ]
            )
        shown.append(markdown(rows))
    return "\n\n".join(shown)


if __name__ == "__main__":
    main()
