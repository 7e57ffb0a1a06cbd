"""Trains a published AWD-LSTM at full size on one accelerator, for as long as there is time.

    KERAS_BACKEND=jax python -m benchmarks.paper_scale RECIPE --minutes M --state FOLDER \\
        --data FOLDER [--options section.key=value ...] [--check FILE] [--store float32]
    KERAS_BACKEND=jax python -m benchmarks.paper_scale RECIPE --data FOLDER --write-check FILE

RECIPE is the name of a recipe with kind "awd-lstm", such as ptb-awd-lstm-drill. The data are the
paper's own: train, valid and test text that is cut into words. Model, batches, SGD, averaging and
moves of senses are the recipe's, except that all windows of text have one length.

Every command with the same FOLDER continues from the last finished epoch. The log is
FOLDER/log.json: tokens a second, hours to all epochs of the recipe, and the validation perplexity
after each epoch and where the time was up. The weights are in files of at most 15 MiB, rounded to
float16 unless `--store float32` is given.

`--write-check` stores the losses of the first steps, on a CPU for example. `--check` compares the
first steps of a training with such a file and stops where they differ. Needs JAX and Keras, no
TensorFlow.
"""

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.seeds_at_once import Text
from keras_drill.callbacks import NonMonotonicAveraging
from keras_drill.senses.sense_reallocator import SenseReallocator
from keras_drill.workbench.tasks.language_model.build_model import build_model
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.tasks.load_config import load_config
from keras_drill.workbench.training.build_sense_reallocation import build_policy

PIECE = 15 * 2**20
# Relative. Rounding errors of another order of sums grow with every step.
CHECK_TOLERANCE = 2e-3
_TRAINED, _OTHERS, _OPTIMIZER, _METRICS = range(4)


class Trained:
    """A model of a recipe, and what changes in it while it trains.

    Attributes:
        state: Values of trained weights, other variables, the optimizer and metrics.
        means: Running means of the trained weights, and `num_averaged`, their number of steps.
    """

    def __init__(self, config: LanguageModelConfig, vocabulary_size: int):
        options = config.optimizer
        self.model = build_model(config, vocabulary_size, config.data.batch_size)
        self.model.compile(
            keras.optimizers.SGD(
                options.learning_rate,
                weight_decay=options.weight_decay or None,
                global_clipnorm=options.clip_norm or None,
            )
        )
        self.model.optimizer.build(self.model.trainable_variables)
        self.state = [[jnp.array(v.value) for v in some] for some in self._variables()]
        self.means: list = []
        self.num_averaged = 0
        carried = {id(v) for v in self.model.backbone.state_variables}
        self._is_carried = [id(v) in carried for v in self.model.non_trainable_variables]
        self._train = jax.jit(self._train_windows, donate_argnums=(0, 1), static_argnums=7)
        self._evaluate = jax.jit(self._evaluate_windows)
        self._reallocator = None
        if config.head.has_senses and config.senses.dynamic:
            self._reallocator = SenseReallocator(
                self.model.head,
                self.model.optimizer,
                config.senses.interval,
                build_policy(config.senses),
                config.senses.momentum,
                config.senses.moved_embedding,
                config.training.seed,
            )

    def _variables(self) -> list:
        model = self.model
        return [
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        ]

    def begin_epoch(self) -> None:
        """Sets the state that recurrent layers carry to zero."""
        self.state[_OTHERS] = self._without_carried(self.state[_OTHERS])

    def _without_carried(self, others: list) -> list:
        return [
            jnp.zeros_like(value) if is_carried else value
            for value, is_carried in zip(others, self._is_carried, strict=True)
        ]

    def train(self, windows: tuple, start: int, stop: int, averaging: bool) -> np.ndarray:
        """Takes a step for each window from `start` to `stop`, as one program.

        Args:
            windows: Tokens and targets, `[n, B, T]` each.
            start, stop: Which windows.
            averaging: Whether the means are updated after each step.

        Returns:
            The losses `[stop - start]`.
        """
        if averaging and not self.means:
            self.means = [jnp.zeros_like(x) for x in self.state[_TRAINED]]
        self.state, self.means, losses = self._train(
            self.state, self.means, self.num_averaged, *windows, start, stop, averaging
        )
        losses = np.asarray(losses)[start:stop]  # waits until the steps are done
        self.num_averaged += (stop - start) * averaging
        if self._reallocator is not None and not averaging:
            self._move_senses()
        return losses

    def _train_windows(self, state, means, num_averaged, tokens, targets, start, stop, averaging):
        metrics = [jnp.zeros_like(x) for x in state[_METRICS]]

        def step(number, carry):
            state, means, losses = carry
            window = (tokens[number], targets[number])
            logs, state = self.model.train_step([*state[:_METRICS], metrics], window)
            state = [list(some) for some in state]
            if averaging:
                count = num_averaged + number - start + 1
                means = [m + (w - m) / count for m, w in zip(means, state[_TRAINED], strict=True)]
            return state, means, losses.at[number].set(logs["loss"])

        return jax.lax.fori_loop(start, stop, step, (state, means, jnp.zeros(len(tokens))))

    def _move_senses(self) -> None:
        """Moves senses where a multiple of the interval has been reached."""
        for variables, values in zip(self._variables(), self.state, strict=True):
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        if self._reallocator.step() is not None:
            self.state = [[jnp.array(v.value) for v in some] for some in self._variables()]

    def perplexity(self, windows: tuple, count: int) -> float:
        """Perplexity of the `count` tokens of a text in windows `[n, B, T]`, of averaged weights
        where there are averages."""
        others = self._without_carried(self.state[_OTHERS])
        weights = self.means if self.num_averaged else self.state[_TRAINED]
        found = np.asarray(self._evaluate(weights, others, *windows))  # [n, B, T]
        log_probs = found.transpose(1, 0, 2).reshape(-1)[:count]
        return float(np.exp(-log_probs.mean(dtype="float64")))

    def _evaluate_windows(self, trained, others, tokens, targets):
        model = self.model
        variables = [*model.trainable_variables, *model.non_trainable_variables]

        def step(others, window):
            mapping = list(zip(variables, [*trained, *others], strict=True))
            with keras.StatelessScope(state_mapping=mapping) as scope:
                hidden = model.backbone(window[0], training=False)
                log_probs = model.head.log_prob(hidden, window[1])
            return [scope.get_current_value(v) for v in model.non_trainable_variables], log_probs

        return jax.lax.scan(step, others, (tokens, targets))[1]

    def arrays(self, dtype: str) -> dict[str, np.ndarray]:
        """All values, with trained weights and means rounded to `dtype`."""
        groups = {"trained": self.state[_TRAINED], "others": self.state[_OTHERS]}
        groups |= {"optimizer": self.state[_OPTIMIZER], "means": self.means}
        return {"num_averaged": np.array(self.num_averaged)} | {
            f"{name}_{i:03}": np.asarray(x, dtype if name in ("trained", "means") else None)
            for name, values in groups.items()
            for i, x in enumerate(values)
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes what `arrays` gave."""

        def values(name):
            return [arrays[key] for key in sorted(arrays) if key.startswith(f"{name}_")]

        names = ("trained", "others", "optimizer")
        self.state = [
            [jnp.asarray(x, old.dtype) for x, old in zip(values(name), olds, strict=True)]
            for name, olds in zip(names, self.state[:_METRICS], strict=True)
        ] + [self.state[_METRICS]]
        self.means = [jnp.asarray(x, "float32") for x in values("means")]
        self.num_averaged = int(arrays["num_averaged"])


def save(folder: Path, arrays: dict[str, np.ndarray], log: dict) -> None:
    """Writes arrays in pieces that are small enough to be carried, then the log."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    content = file.getbuffer()
    count = -(-len(content) // PIECE)
    folder.mkdir(parents=True, exist_ok=True)
    log["pieces"] = [f"epoch-{len(log['epochs'])}.{i}" for i in range(count)]
    for i, name in enumerate(log["pieces"]):
        (folder / name).write_bytes(content[i * PIECE : (i + 1) * PIECE])
    write_log(folder, log)
    for old in set(folder.glob("epoch-*")) - {folder / name for name in log["pieces"]}:
        old.unlink()


def write_log(folder: Path, log: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / "log.new"
    beside.write_text(json.dumps(log, indent=1) + "\n")
    os.replace(beside, folder / "log.json")


def load(folder: Path, log: dict) -> dict[str, np.ndarray]:
    """Reads what `save` wrote."""
    content = b"".join((folder / name).read_bytes() for name in log["pieces"])
    with np.load(io.BytesIO(content)) as archive:
        return {name: archive[name] for name in archive.files}


def compare_losses(losses: np.ndarray, record: dict) -> float:
    """Largest relative difference to the losses of a file of `--write-check`.

    Raises:
        SystemExit: It is too large.
    """
    expected = np.array(record["losses"])
    difference = float(np.abs(losses / expected - 1).max())
    if not difference <= CHECK_TOLERANCE:
        sys.exit(
            f"The losses of the first {len(expected)} steps are not those of --check, so nothing "
            f"is trained: largest difference {difference:.1e}. Received: {losses.tolist()}, "
            f"expected {expected.tolist()}"
        )
    return difference


def train_part(
    trained: Trained, windows: tuple, start: int, interval: int, averaging: bool, end: float
) -> tuple[int, list[float], float]:
    """Trains to the end of an epoch, or until the time `end`.

    Args:
        trained: The model.
        windows: Tokens and targets of the epoch.
        start: How many windows of the epoch are done.
        interval: Steps between moves of senses; so many steps at most are one program.
        averaging: Whether weights are averaged.
        end: In seconds since the epoch of Unix.

    Returns:
        How many windows are done, the seconds that each step took, and the last loss. The first
        call of a process compiles.
    """
    seconds, loss = [], float("nan")
    while start < len(windows[0]) and time.time() < end:
        iteration = int(trained.state[_OPTIMIZER][0])
        stop = min(len(windows[0]), start + interval - iteration % interval)
        begun = time.perf_counter()
        loss = float(trained.train(windows, start, stop, averaging)[-1])
        seconds.append((time.perf_counter() - begun) / (stop - start))
        start = stop
    return start, seconds, loss


def train_until(
    trained: Trained, text: Text, config: LanguageModelConfig, folder: Path, log: dict,
    minutes: float, store: str, check: dict | None,
) -> None:  # fmt: skip
    """Compares the first steps, then trains for some minutes, and keeps log and weights."""
    rows, length = config.data.batch_size, config.data.sequence_length
    windows = tuple(map(jnp.asarray, text.windows("train", rows, length)))
    valid = tuple(map(jnp.asarray, text.windows("valid", rows, length)))
    averaging = NonMonotonicAveraging(non_monotone_interval=config.optimizer.nonmonotone_interval)
    for epoch in log["epochs"]:
        averaging.check(np.log(epoch["valid_perplexity"]))
    steps = 0
    if check and not log["epochs"]:
        steps = len(check["losses"])
        log["check"] = compare_losses(trained.train(windows, 0, steps, False), check)
        print(f"losses differ from those on {check['device']} by {log['check']:.1e}", flush=True)
    end = time.time() + 60 * minutes
    while time.time() < end and len(log["epochs"]) < config.training.epochs:
        if not steps:
            trained.begin_epoch()
        is_averaged = config.optimizer.kind == "nt-asgd" and averaging.averaging
        steps, seconds, loss = train_part(
            trained, windows, steps, config.senses.interval, is_averaged, end
        )
        if seconds:
            # The median: a call that compiles takes longer.
            log["tokens_per_second"] = round(rows * length / float(np.median(seconds)))
            all_tokens = config.training.epochs * windows[0].size
            log["hours_to_all_epochs"] = all_tokens / log["tokens_per_second"] / 3600
        found = {
            "epoch": len(log["epochs"]) + steps / len(windows[0]),
            "last_train_loss": loss,
            "valid_perplexity": trained.perplexity(valid, len(text.splits["valid"])),
            "averaged_steps": trained.num_averaged,
        }
        print(f"{log['name']}: {found}, {log['tokens_per_second']} tokens/s", flush=True)
        if steps < len(windows[0]):
            log["partial"] = found
            write_log(folder, log)
            return
        log.pop("partial", None)
        log["epochs"].append(found)
        averaging.check(np.log(found["valid_perplexity"]))
        save(folder, trained.arrays(store), log)
        steps = 0


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", help="the name of a recipe of an AWD-LSTM")
    parser.add_argument("--data", type=Path, required=True, help="train, valid and test text")
    parser.add_argument("--options", nargs="*", default=[], metavar="section.key=value")
    parser.add_argument("--minutes", type=float, help="how long to train, after --check")
    parser.add_argument("--state", type=Path, help="a folder for log and weights")
    parser.add_argument("--store", default="float16", choices=("float16", "float32"))
    parser.add_argument("--precision", default="highest", help="jax_default_matmul_precision")
    parser.add_argument("--check", type=Path, help="a file that --write-check wrote")
    parser.add_argument("--write-check", type=Path, help="a file for the losses of first steps")
    # SGD with a rate of 30 leaves another device's losses after five steps or so.
    parser.add_argument("--check-steps", type=int, default=4)
    args = parser.parse_args(argv)
    if args.write_check is None and (args.minutes is None or args.state is None):
        parser.error("give --minutes and --state, or --write-check")
    config = load_config(args.recipe).replace(
        {"data.variable_length": "false", **dict(x.split("=", 1) for x in args.options)}
    )
    jax.config.update("jax_default_matmul_precision", args.precision)
    text = Text(args.data)
    name = "-".join([args.recipe, *args.options])
    trained = Trained(config, len(text.counts))
    device = jax.devices()[0].device_kind
    about = {"name": name, "data": args.data.name, "device": device, "jax": jax.__version__}
    if args.write_check is not None:
        windows = text.windows("train", config.data.batch_size, config.data.sequence_length)
        windows = tuple(jnp.asarray(x[: args.check_steps]) for x in windows)
        losses = trained.train(windows, 0, len(windows[0]), False)
        record = {**about, "losses": losses.tolist()}
        args.write_check.write_text(json.dumps(record, indent=1) + "\n")
        print(record)
        return
    file = args.state / "log.json"
    log = json.loads(file.read_text()) if file.exists() else {"epochs": [], "tokens_per_second": 0}
    if log.get("name", name) != name:
        parser.error(f"--state has a training of {log['name']}. Received: {name}")
    log |= {**about, "precision": args.precision, "store": args.store}
    log["epochs_of_recipe"] = config.training.epochs
    if log["epochs"]:
        trained.restore(load(args.state, log))
    check = json.loads(args.check.read_text()) if args.check else None
    train_until(trained, text, config, args.state, log, args.minutes, args.store, check)


if __name__ == "__main__":
    main()
