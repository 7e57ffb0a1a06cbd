"""Measures time and memory of a training step with every output layer, and the layers' efficiency.

    python -m benchmarks.output_layers [--heads tied drill ...] [--sizes V,BATCH,LENGTH ...]
        [--rounds R] [--seed S] [--what step efficiency memory]

The model is AWD-LSTM (3 x 1150, embeddings 400). The tables show for every size:

- the time of a training step relative to the tied head in the same round, the papers' ratios, and
  the ratio of the numbers of multiplications;
- peak memory in a new process beyond that of the tied head;
- efficiency: the time of the bare matrix products that loss and gradients need, divided by the time
  of the head alone.

Steps alternate between all heads; ratios are medians over rounds. DRILL has depth 4, KerBS three
senses per word and its own sense matrix, MoS 15 components.
"""

import argparse
import json
import math
import os
import statistics
from itertools import pairwise

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from benchmarks.timing import alternate, describe, in_fresh_process, median_ratio, peak_memory

EMBEDDING, UNITS, LAYERS = 400, 1150, 3
DEPTH, MIXTURES, SENSES = 4, 15, 3
HEADS = ("tied", "softmax", "bilinear", "dual", "drill", "mos", "kerbs", "drill+kerbs")
SIZES = ("10000,20,70", "33278,20,70", "10000,80,70", "33278,80,70")
PAPERS = {"drill": "1.14-1.19", "mos": "2.97-9.7", "kerbs": "2"}


def make_head(name: str, vocabulary_size: int, embedding):
    """The head called `name` on top of hidden states of the embedding's width."""
    import keras_drill

    def residual():
        return keras_drill.ResidualLabelEncoder(depth=DEPTH, activation="relu", dropout=0.6)

    if name == "softmax":
        return keras_drill.SoftmaxOutput(vocabulary_size)
    if name == "mos":
        return keras_drill.MixtureOfSoftmaxes(
            vocabulary_size, embedding, MIXTURES, context_dropout=0.3
        )
    if "kerbs" in name:
        return keras_drill.KernelizedBayesianSoftmax(
            vocabulary_size,
            num_senses=SENSES * vocabulary_size,
            label_encoder=residual() if name == "drill+kerbs" else None,
        )
    label_encoder = {
        "tied": lambda: None,
        "bilinear": keras_drill.BilinearLabelEncoder,
        "dual": lambda: keras_drill.DualNonlinearLabelEncoder(EMBEDDING),
        "drill": residual,
    }[name]()
    return keras_drill.OutputLayer(vocabulary_size, embedding, label_encoder)


def products(name: str, vocabulary_size: int, num_tokens: int) -> list[tuple[int, int, int]]:
    """`(rows, columns, inner)` of the head's matrix products; each needs two more for gradients."""
    labels = vocabulary_size * (SENSES if "kerbs" in name else 1)
    contexts = num_tokens * (MIXTURES if name == "mos" else 1)
    needed = [(contexts, labels, EMBEDDING)]
    if "drill" in name:
        needed += [(labels, EMBEDDING, EMBEDDING)] * DEPTH
    if name in ("bilinear", "dual"):
        needed.append((labels, EMBEDDING, EMBEDDING))
    if name == "dual":
        needed.append((num_tokens, EMBEDDING, EMBEDDING))
    if name == "mos":
        needed.append((num_tokens, MIXTURES * EMBEDDING, EMBEDDING))
    return needed


def multiplications(name: str, vocabulary_size: int, num_tokens: int) -> int:
    """Of a whole training step, in products that count: those of backbone and head."""
    widths = [EMBEDDING] + [UNITS] * (LAYERS - 1) + [EMBEDDING]
    weights = sum(4 * n * (m + n) for m, n in pairwise(widths))
    head = sum(math.prod(shape) for shape in products(name, vocabulary_size, num_tokens))
    return 3 * (num_tokens * weights + head)


def training_step(name: str, size: str, seed: int):
    """A function that trains a language model for one step and returns the loss."""
    import keras

    import keras_drill

    vocabulary_size, batch, length = map(int, size.split(","))
    keras.utils.set_random_seed(seed)
    backbone = keras_drill.models.AWDLSTM(
        vocabulary_size, EMBEDDING, UNITS, LAYERS, stateful=True, batch_size=batch, seed=seed
    )
    model = keras_drill.LanguageModel(
        backbone, make_head(name, vocabulary_size, backbone.embedding)
    )
    model.compile(keras.optimizers.SGD(1.0, global_clipnorm=0.25))
    frequency = 1 / np.arange(1, vocabulary_size + 1)
    words = np.random.default_rng(seed).choice(
        vocabulary_size, (batch, length + 1), p=frequency / frequency.sum()
    )
    words = words.astype("int32")
    return lambda: float(model.train_on_batch(words[:, :-1], words[:, 1:]))


def head_and_products(name: str, size: str, seed: int) -> dict:
    """Two functions: loss and all gradients of the head alone, and its bare matrix products."""
    import keras
    import tensorflow as tf

    vocabulary_size, batch, length = map(int, size.split(","))
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    hidden = tf.constant(0.3 * rng.standard_normal((batch, length, EMBEDDING), dtype="float32"))
    targets = tf.constant(rng.integers(0, vocabulary_size, (batch, length)), tf.int32)
    embedding = keras.layers.Embedding(vocabulary_size, EMBEDDING)
    head = make_head(name, vocabulary_size, embedding)
    head.build(hidden.shape)
    variables = [variable.value for variable in head.trainable_variables]

    @tf.function
    def loss_and_gradients():
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            loss = head.loss(hidden, targets)
        return loss, *tape.gradient(loss, [hidden, *variables])

    operands = []
    for rows, columns, inner in products(name, vocabulary_size, batch * length):
        block = math.ceil(rows / _num_blocks(rows, columns))
        operands.append((_random(block, inner), _random(columns, inner), rows))

    @tf.function
    def bare():
        done = tf.zeros(())
        for x, w, rows in operands:
            done = _three_products(x, w, _num_blocks(rows, len(w)), done)
        return done

    return {
        "head": lambda: float(loss_and_gradients()[0]),
        "products": lambda: float(bare()),
    }


def _num_blocks(rows: int, columns: int) -> int:
    """Blocks of rows, large enough to be multiplied at full speed, that rows are cut into."""
    return math.ceil(rows / max(256, 2**28 // (4 * columns)))


def _random(rows, columns):
    import tensorflow as tf

    return tf.random.stateless_uniform((rows, columns), (rows, columns))


def _three_products(x, w, times, done):
    """`x wᵀ`, and from a derivative of its shape those for x and w; a few times."""
    import tensorflow as tf

    def body(index, done):
        rows = x + done
        y = tf.matmul(rows, w, transpose_b=True)
        d_x = tf.matmul(y, w)
        d_w = tf.matmul(y, rows, transpose_a=True)
        return index + 1, 1e-30 * (d_x[0, 0] + d_w[0, 0])

    return tf.while_loop(lambda i, _: i < times, body, (0, done), parallel_iterations=1)[1]


def measure_steps(heads, size, rounds, seed):
    vocabulary_size, batch, length = map(int, size.split(","))
    steps = {name: training_step(name, size, seed) for name in {"tied": 0, **dict.fromkeys(heads)}}
    seconds = alternate(steps, rounds)
    operations = {name: multiplications(name, vocabulary_size, batch * length) for name in steps}
    print(f"  {'training step':14} {'seconds':>9} {'/ tied':>7} {'operations':>11} {'paper':>10}")
    for name, times in seconds.items():
        print(
            f"  {name:14} {statistics.median(times):9.3f}"
            f" {median_ratio(times, seconds['tied']):7.2f}"
            f" {operations[name] / operations['tied']:11.2f} {PAPERS.get(name, '-'):>10}"
        )


def measure_efficiency(heads, size, rounds, seed):
    print(f"  {'head alone':14} {'seconds':>9} {'products':>9} {'efficiency':>11}")
    for name in heads:
        seconds = alternate(head_and_products(name, size, seed), rounds)
        print(
            f"  {name:14} {statistics.median(seconds['head']):9.3f}"
            f" {statistics.median(seconds['products']):9.3f}"
            f" {median_ratio(seconds['products'], seconds['head']):11.2f}"
        )


def measure_memory(heads, size, seed):
    arguments = ("--sizes", size, "--seed", str(seed), "--peak")
    peaks = {
        name: json.loads(in_fresh_process("benchmarks.output_layers", *arguments, name))
        for name in {"tied": 0, **dict.fromkeys(heads)}
    }
    print(f"  {'peak memory':14} {'MiB':>9} {'- tied':>9}")
    for name, peak in peaks.items():
        print(f"  {name:14} {peak / 2**20:9.0f} {(peak - peaks['tied']) / 2**20:9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.output_layers")
    parser.add_argument("--heads", nargs="+", default=HEADS, choices=HEADS)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="V,BATCH,LENGTH")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--what",
        nargs="+",
        default=("step", "efficiency", "memory"),
        choices=("step", "efficiency", "memory"),
    )
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        training_step("tied", "101,2,3", options.seed)()  # libraries, threads
        step = training_step(options.peak, options.sizes[0], options.seed)
        print(peak_memory(lambda: [step() for _ in range(2)]))
        return
    print(describe(), f"seed {options.seed}, {options.rounds} rounds", sep=", ")
    for size in options.sizes:
        print(f"\nV, batch, length = {size}", flush=True)
        if "step" in options.what:
            measure_steps(options.heads, size, options.rounds, options.seed)
        if "efficiency" in options.what:
            measure_efficiency(options.heads, size, options.rounds, options.seed)
        if "memory" in options.what:
            measure_memory(options.heads, size, options.seed)


if __name__ == "__main__":
    main()
