"""Trains a language model with all its seeds at once, as one program on the JAX backend.

    KERAS_BACKEND=jax python -m benchmarks.seeds_at_once --data ptb --folder runs/at-once \\
        --recipe small-drill --options head.learning_rate_multiplier=0.1 [--seeds 0 1 2] \\
        [--epochs 15] [--share 1]

A small model leaves a GPU idle: its steps take the time to start kernels. So `jax.vmap` runs the
train step of one model over the weights of several, which differ by their seed. Each seed is
trained as it is alone with the same windows of text.

| recipe | training | evaluated |
|---|---|---|
| of SGD | windows of one length, a learning rate that falls along a cosine | the last epoch |
| of NT-ASGD | as the recipe says, but for the number of epochs | the best epoch of each seed |

Recipes of NT-ASGD keep their activation regularisation (AR and TAR), weight decay and averaging:
each seed begins to average after its own epoch. Their windows have random lengths, as those of SGD
with `--options data.variable_length=true`. The lengths are drawn as in a run of the first seed, and
all seeds share them, because one program has one shape. The step is compiled once for each length:
padded windows would change the means of AR and TAR. A recipe has about 60 lengths, and JAX keeps
what it compiled if `JAX_COMPILATION_CACHE_DIR` names a folder.

Recipes with Adam, or with senses that a callback moves, raise an error.

The result is written to FOLDER after training. A command whose result exists does nothing. Without
`--recipe`, the tables of all results are printed: means, half the width of 95 % intervals, and nats
saved over `small-tied`, seed by seed. TensorFlow is not required.
"""

import argparse
import collections
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.compare_recipes import markdown, mean_and_interval
from keras_drill.callbacks.non_monotonic_averaging import NonMonotonicAveraging
from keras_drill.optimizers import SequenceLengthSchedule, WarmupSchedule
from keras_drill.optimizers.window_lengths import draw_window_lengths
from keras_drill.workbench.analysis.bins import bin_ends, frequency_label
from keras_drill.workbench.tasks.language_model.build_model import build_model
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.tasks.load_config import load_config

_BINS = (1, 10, 50, 250, 1000)  # where bins of training counts begin
_OF_SGD = ("optimizer.learning_rate", "optimizer.clip_norm", "optimizer.scale_with_length")
_OF_AVERAGING = ("optimizer.weight_decay", "optimizer.nonmonotone_interval")
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
    config = load_config(args.recipe)
    averages = config.optimizer.kind == "nt-asgd"
    fixed_length = {} if averages else {"data.variable_length": "false"}
    config = config.replace({**fixed_length, **options})
    if config.optimizer.kind == "adam" or config.head.has_senses:
        parser.error(
            f"--recipe must train with SGD or NT-ASGD and have no senses, not {args.recipe}"
        )
    changeable = _OF_SGD + (_OF_AVERAGING if averages else ())
    fixed = ("training.", "optimizer.")
    ignored = [key for key in options if key.startswith(fixed) and key not in changeable]
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
        tokens, targets = (
            x.reshape(rows, -1, length).swapaxes(0, 1) for x in self._with_tokens(ids, rows)
        )
        return tokens, targets

    def training_windows(self, rows: int, lengths: Sequence[int]) -> list[tuple]:
        """Windows of the given lengths T, and their targets, `[1, rows, T]` each."""
        ids = self.splits["train"]
        tokens, targets = self._with_tokens(ids[: len(ids) // rows * rows], rows)
        ends = np.cumsum(lengths)
        return [
            (tokens[None, :, end - length : end], targets[None, :, end - length : end])
            for length, end in zip(lengths, ends, strict=True)
        ]

    def _with_tokens(self, ids, rows):
        """Targets in rows, and the tokens before them, `[rows, steps]`."""
        targets = ids.reshape(rows, -1)
        before = np.concatenate([[self.end], targets[:-1, -1]])[:, None]
        return np.concatenate([before, targets[:, :-1]], axis=1).astype(np.int32), targets


def _lines(folder: Path, split: str) -> list[list[str]]:
    (file,) = folder.glob(f"*{split}.txt")
    return [[*line.split(), _END] for line in file.read_text().splitlines()]


def train(
    config: LanguageModelConfig, text: Text, seeds: Sequence[int], epochs: int, name: str = ""
) -> dict:
    """Trains and evaluates models that differ by their seed.

    Returns:
        What a result's file holds: validation perplexities after each epoch and of the evaluated
        one, test perplexities, nats by training count, and with NT-ASGD the number of epochs with
        averaging; a list over seeds each.
    """
    begun = time.perf_counter()
    rows, length = config.data.batch_size, config.data.sequence_length
    epoch_windows, lengths = _training_windows(config, text, seeds[0], epochs)
    models = SeedModels(config, len(text.counts), seeds, lengths)
    held_out = {name: text.windows(name, rows, length) for name in ("valid", "test")}
    interval = config.optimizer.nonmonotone_interval
    averagings = [
        NonMonotonicAveraging(non_monotone_interval=interval, average_from_start=not interval)
        for _ in (seeds if config.optimizer.kind == "nt-asgd" else ())
    ]
    curve, averaged = [], []
    for epoch in range(epochs):
        averaged.append([averaging.averaging for averaging in averagings])
        models.train_epoch(epoch_windows(epoch), averaged[-1])
        curve.append(_perplexities(models, held_out["valid"], len(text.splits["valid"])))
        if averagings:
            models.keep(is_better=np.argmin(curve, axis=0) == epoch)
            for averaging, perplexity in zip(averagings, curve[-1], strict=True):
                averaging.check(math.log(perplexity))
        shown = ", ".join(f"{each:.1f}" for each in curve[-1])
        print(f"{name} {epoch + 1}: {shown}; {time.perf_counter() - begun:.0f} s", flush=True)
    count = len(text.splits["test"])
    log_probs = models.log_probs(*held_out["test"], of_kept=bool(averagings))[:, :count]
    seen = text.counts[text.splits["test"]]
    return {
        "validation_after_epoch": curve,
        "valid_perplexity": np.min(curve, axis=0).tolist() if averagings else curve[-1],
        **({"averaged_epochs": np.sum(averaged, axis=0).tolist()} if averagings else {}),
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


def _training_windows(
    config: LanguageModelConfig, text: Text, seed: int, epochs: int
) -> tuple[Callable[[int], list[tuple]], np.ndarray]:
    """Returns the windows of an epoch as a function, and the lengths of all training steps."""
    rows, length = config.data.batch_size, config.data.sequence_length
    if not config.data.variable_length:
        batches = text.windows("train", rows, length)
        return lambda epoch: [batches], np.full(epochs * len(batches[0]), length)
    steps = len(text.splits["train"]) // rows
    lengths = [draw_window_lengths(steps, length, seed, epoch) for epoch in range(epochs)]
    return lambda epoch: text.training_windows(rows, lengths[epoch]), np.concatenate(lengths)


def _make_optimizer(config: LanguageModelConfig, lengths: np.ndarray) -> keras.optimizers.SGD:
    options, data = config.optimizer, config.data
    rate = options.learning_rate
    if options.kind == "sgd":
        rate = WarmupSchedule(rate, decay="cosine", decay_steps=len(lengths))
    if data.variable_length and options.scale_with_length:
        rate = SequenceLengthSchedule(rate, lengths, data.sequence_length)
    return keras.optimizers.SGD(
        rate,
        weight_decay=options.weight_decay or None,
        global_clipnorm=options.clip_norm or None,
    )


def _perplexities(models: "SeedModels", windows: tuple, count: int) -> list[float]:
    return np.exp(-models.log_probs(*windows)[:, :count].mean(axis=1)).tolist()


class SeedModels:
    """Models of one configuration that differ by their seed, as one model and many states.

    Args:
        config: The options.
        vocabulary_size: Number of words.
        seeds: The seeds.
        lengths: Lengths of the windows of all training steps.
    """

    def __init__(
        self,
        config: LanguageModelConfig,
        vocabulary_size: int,
        seeds: Sequence[int],
        lengths: np.ndarray,
    ):
        rows = config.data.batch_size
        longest = max(config.data.sequence_length, *lengths)
        config = config.replace({"head.tile_size": int(rows * longest)})
        states = []
        for seed in seeds:
            self._model = build_model(
                config.replace({"training.seed": seed}), vocabulary_size, rows
            )
            self._model.compile(_make_optimizer(config, lengths))
            self._model.optimizer.build(self._model.trainable_variables)
            states.append([[np.asarray(v) for v in some] for some in self._variables()])
        self._state = jax.tree.map(lambda *values: np.stack(values), *states)
        self._averages: _Averages | None = None
        if config.optimizer.kind == "nt-asgd":  # from the start: one program for each length
            zeros = [np.zeros(w.shape, np.float32) for w in self._state[0]]
            self._averages = _Averages(zeros, zeros, np.zeros(len(seeds), np.float32))
        self._kept: list | None = None
        carried = {id(v) for v in self._model.backbone.state_variables}
        self._is_carried = [id(v) in carried for v in self._model.non_trainable_variables]
        self._train = jax.jit(self._train_windows, donate_argnums=(0, 1))
        self._evaluate = jax.jit(self._evaluate_windows)

    def _variables(self) -> list:
        model = self._model
        return [
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        ]

    def train_epoch(self, windows: list[tuple], is_averaging: Sequence[bool] = ()) -> None:
        """Takes a step for each window, from a carried state of zeros.

        Args:
            windows: Tokens and targets `[n, B, T]`, of any n and T each.
            is_averaging: For each seed, whether its weights are averaged.
        """
        self._state = self._begun()
        mask = np.array(is_averaging, bool)
        for tokens, targets in windows:
            self._state, self._averages = self._train(
                self._state, self._averages, mask, tokens, targets
            )

    def log_probs(
        self, tokens: np.ndarray, targets: np.ndarray, of_kept: bool = False
    ) -> np.ndarray:
        """Those of the targets, in the order of the text, `[seeds, n·B·T]`.

        Args:
            tokens: `[n, B, T]`.
            targets: `[n, B, T]`.
            of_kept: Whether to evaluate the weights that `keep` has kept.
        """
        weights = self._kept if of_kept else self._weights()
        found = np.asarray(self._evaluate(weights, self._begun()[1], tokens, targets))
        return found.transpose(1, 2, 0, 3).reshape(found.shape[1], -1)  # from [n, seeds, B, T]

    def keep(self, is_better: np.ndarray) -> None:
        """Keeps the weights of the seeds that are better than before, `[seeds]`."""
        weights = self._weights()
        kept = weights if self._kept is None else _choose(is_better, weights, self._kept)
        self._kept = [np.array(w) for w in kept]  # copies: training takes over its arrays

    def _weights(self) -> list:
        """The weights to evaluate: of seeds that average, the means."""
        if self._averages is None:
            return self._state[0]
        return _choose(self._averages.count > 0, self._averages.means, self._state[0])

    def _begun(self) -> tuple:
        """The state, with zeros for what recurrent layers carry."""
        trained, others, *rest = self._state
        others = [
            np.zeros(value.shape, value.dtype) if is_carried else value
            for value, is_carried in zip(others, self._is_carried, strict=True)
        ]
        return trained, others, *rest

    def _train_windows(self, state, averages, is_averaging, tokens, targets):
        def step(carry, window):
            state, averages = carry
            _, state = jax.vmap(self._model.train_step, in_axes=(0, None))(state, window)
            if averages is not None:
                averages = averages.updated(state[0], is_averaging)
            return (state, averages), None

        return jax.lax.scan(step, (state, averages), (tokens, targets))[0]

    def _evaluate_windows(self, weights, others, tokens, targets):
        model = self._model

        def evaluate(trained, others, window):
            variables = [*model.trainable_variables, *model.non_trainable_variables]
            mapping = zip(variables, [*trained, *others], strict=True)
            with keras.StatelessScope(state_mapping=list(mapping)) as scope:
                hidden = model.backbone(window[0], training=False)
                log_probs = model.head.log_prob(hidden, window[1])
            return [scope.get_current_value(v) for v in model.non_trainable_variables], log_probs

        def step(others, window):
            return jax.vmap(evaluate, in_axes=(0, 0, None))(weights, others, window)

        return jax.lax.scan(step, others, (tokens, targets))[1]


class _Averages(NamedTuple):
    """Means of the weights of several seeds over the steps in which each one averages.

    The sums are those of `keras_drill.callbacks.NonMonotonicAveraging`.

    Attributes:
        means: Arrays `[seeds, ...]`.
        rests: Rounding errors of the means.
        count: Number of averaged steps, `[seeds]`.
    """

    means: list
    rests: list
    count: Any

    def updated(self, weights: list, is_averaging: Any) -> "_Averages":
        """The means after one more step."""
        count = self.count + is_averaging
        means, rests = [], []
        for mean, rest, weight in zip(self.means, self.rests, weights, strict=True):
            change = (weight - mean - rest) / _beside(jnp.maximum(count, 1), weight) + rest
            after = mean + change
            added = after - mean
            means.append(after)
            rests.append((mean - (after - added)) + (change - added))
        return _Averages(
            _choose(is_averaging, means, self.means),
            _choose(is_averaging, rests, self.rests),
            count,
        )


def _choose(is_first: Any, first: list, second: list) -> list:
    """Of each seed the first or the second arrays `[seeds, ...]`."""
    return [
        jnp.where(_beside(is_first, one), one, other)
        for one, other in zip(first, second, strict=True)
    ]


def _beside(of_seeds: Any, array: Any) -> Any:
    """An array `[seeds]` with the axes of `[seeds, ...]`."""
    return jnp.reshape(of_seeds, (-1,) + (1,) * (array.ndim - 1))


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
