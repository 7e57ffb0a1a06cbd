"""Compares fused distillation with `keras.distillation.LogitsDistillation`.

    python -m benchmarks.distillation [--sizes N,V,d,teacher_d ...] [--json FILE]

For every size, the table shows the time and the peak memory (beyond inputs and gradients) of the
loss `CE / 2 + KL / 2` at temperature 2, with the gradients of the student's hidden states and
labels. Keras' strategy gets the logits of both models, as from `keras.distillation.Distiller`.
Every measurement runs in a separate process; timings alternate between processes.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.side_by_side import columns, compare_methods, measure_once, write_table

SIZES = ("2048,32000,512,1024", "1024,128256,512,1024")
METHODS = ("fused", "keras")
TEMPERATURE = 2.0


def make_arrays(size: str, seed: int) -> list[np.ndarray]:
    n, v, d, teacher_d = map(int, size.split(","))
    rng = np.random.default_rng(seed)
    arrays = []
    for width in (d, teacher_d):
        arrays.append(rng.standard_normal((n, width), dtype="float32"))
        arrays.append(rng.standard_normal((v, width), dtype="float32") / np.sqrt(width, dtype="f"))
    return [*arrays, rng.integers(0, v, n).astype("int32")]


def make_step(method: str, size: str, seed: int):
    """A compiled function of nothing: the loss, and gradients for hidden states and labels."""
    import keras
    import tensorflow as tf

    import keras_drill

    hidden, labels, teacher_hidden, teacher_labels, targets = map(
        tf.constant, make_arrays(size, seed)
    )
    of_targets = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # Named by a string, Keras 3.15 takes the divergence of logits in place of probabilities.
    of_teacher = keras.distillation.LogitsDistillation(TEMPERATURE, keras.losses.KLDivergence())

    def fused():
        return keras_drill.ops.linear_kl_divergence(
            hidden,
            labels,
            teacher_hidden,
            teacher_labels,
            targets=targets,
            temperature=TEMPERATURE,
        )

    def with_logits():
        logits = tf.matmul(hidden, labels, transpose_b=True)
        teacher_logits = tf.matmul(teacher_hidden, teacher_labels, transpose_b=True)
        distillation = of_teacher.compute_loss(teacher_logits, logits)
        return 0.5 * of_targets(targets, logits) + 0.5 * distillation

    loss_function = {"fused": fused, "keras": with_logits}[method]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch([hidden, labels])
            loss = loss_function()
        return loss, *tape.gradient(loss, [hidden, labels])

    return step


def measure(size: str, rounds: int, seed: int) -> list:
    """A row of the table."""
    arguments = ["--sizes", size, "--seed", str(seed)]
    found = compare_methods("benchmarks.distillation", METHODS, arguments, rounds)
    n, v, d, _ = map(int, size.split(","))
    return found.row(size, 4 * (n * d + v * d), tolerance=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distillation")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="N,V,d,teacher_d")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--once", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        kind, method = options.once
        step, small_step = (
            make_step(method, size, options.seed) for size in (options.sizes[0], "1024,4096,32,32")
        )
        print(json.dumps(measure_once(kind, step, small_step)))
        return
    rows = [measure(size, options.rounds, options.seed) for size in options.sizes]
    table = {"columns": columns("N × V × d × teacher's d", "fused", "Keras"), "rows": rows}
    write_table("benchmarks.distillation", "loss", table, options.json)


if __name__ == "__main__":
    main()
