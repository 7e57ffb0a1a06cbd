"""Measures the cost of checkpoints: training steps with and without checkpoints.

    python -m benchmarks.checkpointing [--recipe small-drill] [--every 50] [--rounds 5]

In one training run, windows of `--every` steps with and without a checkpoint alternate. Checkpoints
are made as in `keras-drill train`: the values are copied and checked, and a thread writes them
during the next steps. The time of steps is processor time of all threads, which other processes
hardly influence. `waits` is the wall-clock time during which training waits.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from benchmarks.timing import describe


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default="small-drill")
    parser.add_argument("--every", type=int, default=50, help="steps of a window")
    parser.add_argument("--checkpoint-every", type=int, default=200, help="as in the recipes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, default=10_000)
    arguments = parser.parse_args()
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        windows, arrays = train(arguments, Path(folder))
    size = sum(array.nbytes for array in arrays.values())
    with_one, without = (windows.seconds[kind] for kind in (True, False))
    step = statistics.median(without) / arguments.every
    print(f"{arguments.recipe}: {size / 1e6:.1f} MB a checkpoint, {step * 1000:.1f} ms a step")
    print(f"waits {statistics.median(windows.waits) * 1000:.1f} ms for a checkpoint")
    extra = statistics.median(a - b for a, b in zip(with_one, without, strict=True))
    print(f"a checkpoint takes {extra * 1000:.0f} ms of the processor, {extra / step:.2f} steps")
    every = arguments.checkpoint_every
    print(
        f"with one every {every} steps, a step takes {1 + extra / step / every:.4f} of one without"
    )


class Windows(keras.callbacks.Callback):
    """Times windows of steps, of which every second one begins with a checkpoint."""

    def __init__(self, every: int, save):
        super().__init__()
        self.every = every
        self.save = save
        self.seconds: dict[bool, list[float]] = {True: [], False: []}
        self.waits: list[float] = []
        self.steps = 0

    def on_train_batch_begin(self, batch, logs=None):
        if self.steps % self.every == 0:
            now = time.process_time()
            number = self.steps // self.every
            if number > 1:  # not the first, which traces
                self.seconds[number % 2 == 0].append(now - self.start)
            self.start = now
            if number % 2:
                start = time.perf_counter()
                self.save(self.steps)
                self.waits.append(time.perf_counter() - start)
        self.steps += 1


def train(arguments, folder):
    from keras_drill.data import ContiguousBatches
    from keras_drill.distribute import strategy
    from keras_drill.workbench.tasks.language_model.build_model import build_model
    from keras_drill.workbench.tasks.load_config import load_config
    from keras_drill.workbench.training.build_optimizer import build_optimizer
    from keras_drill.workbench.training.checkpoint_writer import CheckpointWriter
    from keras_drill.workbench.training.checkpoints import CheckpointStore
    from keras_drill.workbench.training.snapshot import take_snapshot
    from keras_drill.workbench.training.workers import Workers

    config = load_config(arguments.recipe)
    rows, length = config.data.batch_size, config.data.sequence_length
    steps = arguments.every * (2 * arguments.rounds + 1) + 1
    ids = np.random.default_rng(1).integers(0, arguments.vocabulary, rows * length * steps)
    batches = ContiguousBatches(ids, rows, length)
    model = build_model(config, arguments.vocabulary, rows)
    model.compile(build_optimizer(config, batches), jit_compile=False)
    workers, store = Workers(strategy("none")), CheckpointStore(folder)
    last: dict[str, np.ndarray] = {}

    with CheckpointWriter(store) as writer:

        def save(step: int) -> None:
            arrays = take_snapshot(model, workers)
            if not all(np.isfinite(array).all() for array in arrays.values()):
                raise SystemExit("a weight became NaN or infinite")
            writer.begin(step, arrays, {"step": step})
            last.update(arrays)

        windows = Windows(arguments.every, save)
        model.fit(batches.dataset(), shuffle=False, verbose=0, callbacks=[windows])
    return windows, last


if __name__ == "__main__":
    main()
