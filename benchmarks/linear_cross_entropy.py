"""Compares the fused cross-entropy with materialised logits in TensorFlow and PyTorch.

    python -m benchmarks.linear_cross_entropy [--sizes N,V,d ...] [--rounds R] [--tile-bytes B]

The tables show for every size:

- throughput relative to a TensorFlow head with materialised logits (`matmul`, bias,
  `sparse_softmax_cross_entropy_with_logits`, automatic differentiation), to PyTorch's
  `F.cross_entropy` over a linear layer if torch is installed, and to the three bare matrix products
  that any exact gradient needs;
- peak memory of each in a new process, beyond its inputs, with and without the returned gradients;
- the same under mixed bfloat16, with the error against float64, and the speed-up of the bare
  products by bfloat16 on this machine.
"""

import argparse
import json
import statistics

import numpy as np

from benchmarks.timing import alternate, describe, in_fresh_process, median_ratio, peak_memory

SIZES = ("1400,33278,400", "4096,128256,512", "2048,256000,1024")
LOW = ("fused bfloat16", "three products bfloat16")


def make_arrays(size: str, seed: int):
    n, v, d = map(int, size.split(","))
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, d), dtype="float32")
    labels = 0.05 * rng.standard_normal((v, d), dtype="float32")
    bias = 0.1 * rng.standard_normal(v, dtype="float32")
    return hidden, labels, bias, rng.integers(0, v, n).astype("int32")


def tensorflow_function(name: str, size: str, seed: int, tile_bytes: int | None = None):
    """The compiled function called `name`: () -> loss and gradients for hidden, labels, bias."""
    import tensorflow as tf

    import keras_drill

    hidden, labels, bias, targets = map(tf.constant, make_arrays(size, seed))

    if name == "three products bfloat16":
        hidden, labels = tf.cast(hidden, tf.bfloat16), tf.cast(labels, tf.bfloat16)
    if name in ("fused", "fused bfloat16"):
        head = keras_drill.SoftmaxOutput(
            len(bias),
            tile_bytes=tile_bytes,
            embeddings_initializer=lambda shape, dtype: labels,
            dtype="mixed_bfloat16" if name.endswith("bfloat16") else "float32",
        )
        head.build(hidden.shape)
        head.bias.assign(bias)
        hidden = tf.cast(hidden, head.compute_dtype)

    @tf.function
    def fused():
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            loss = head.loss(hidden, targets)
        wanted = [hidden, head.label_embeddings.value, head.bias.value]
        return loss, *tape.gradient(loss, wanted)

    @tf.function
    def materialised():
        with tf.GradientTape() as tape:
            tape.watch([hidden, labels, bias])
            logits = tf.matmul(hidden, labels, transpose_b=True) + bias
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
            loss = tf.reduce_mean(losses)
        return loss, *tape.gradient(loss, [hidden, labels, bias])

    @tf.function
    def products():
        scores = tf.matmul(hidden, labels, transpose_b=True)
        d_hidden = tf.matmul(scores, labels)
        return scores[0, 0], d_hidden, tf.matmul(scores, hidden, transpose_a=True)

    return {
        "fused": fused,
        "fused bfloat16": fused,
        "materialised": materialised,
        "three products": products,
        "three products bfloat16": products,
    }[name]


def torch_function(size: str, seed: int):
    """PyTorch's head, or None where torch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    arrays = make_arrays(size, seed)
    hidden, labels, bias = (torch.from_numpy(x).requires_grad_() for x in arrays[:3])
    targets = torch.from_numpy(arrays[3]).long()

    def step():
        for tensor in (hidden, labels, bias):
            tensor.grad = None
        loss = torch.nn.functional.cross_entropy(
            torch.nn.functional.linear(hidden, labels, bias), targets
        )
        loss.backward()
        return float(loss.detach())

    return step


def float64_gradient(size: str, seed: int) -> np.ndarray:
    """Gradient of the labels in float64, by blocks of tokens."""
    hidden, labels, bias, targets = make_arrays(size, seed)
    labels = labels.astype("float64")
    gradient = np.zeros_like(labels)
    for start in range(0, len(hidden), 64):
        block = hidden[start : start + 64].astype("float64")
        scores = block @ labels.T + bias
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        scores[np.arange(len(block)), targets[start : start + 64]] -= 1
        gradient += scores.T @ block / len(hidden)
    return gradient


def measure(size: str, rounds: int, seed: int, tile_bytes: int | None) -> None:
    steps = {
        name: tensorflow_function(name, size, seed, tile_bytes)
        for name in ("fused", "materialised", "three products", *LOW)
    }
    functions = {name: (lambda step=step: float(step()[0])) for name, step in steps.items()}
    torch_step = torch_function(size, seed)
    if torch_step is not None:
        functions["PyTorch"] = torch_step
    seconds = alternate(functions, rounds)
    n, v, d = map(int, size.split(","))
    print(f"\nN={n} V={v} d={d}: {6 * n * v * d / 1e9:.0f} GFLOP in three products")
    for name, times in seconds.items():
        ratio = median_ratio(times, seconds["fused"])
        print(f"  {name:23} {statistics.median(times):8.3f} s   {ratio:5.2f} x the fused time")
    for name in LOW:
        gain = median_ratio(seconds[name.removesuffix(" bfloat16")], seconds[name])
        print(f"  {name:23} {gain:5.2f} times the throughput of float32")
    tile = [] if tile_bytes is None else ["--tile-bytes", str(tile_bytes)]
    peaks = {
        name: json.loads(
            in_fresh_process(
                "benchmarks.linear_cross_entropy", "--peak", name, "--sizes", size, *tile
            )
        )
        for name in ("fused", "materialised", "fused bfloat16")
    }
    gradient_bytes = 4 * (n * d + v * d + v)
    for name, peak in peaks.items():
        share = (peak - gradient_bytes) / (peaks["materialised"] - gradient_bytes)
        print(
            f"  {name:23} {peak / 2**20:8.0f} MiB peak, {(peak - gradient_bytes) / 2**20:8.0f} MiB"
            f" beyond the gradients   {share:.3f} of materialised"
        )
    if n * v <= 1e8:
        expected = float64_gradient(size, seed)
        for name in ("fused", "fused bfloat16"):
            actual = np.asarray(steps[name]()[2], "float64")
            error = np.abs(actual - expected).max() / np.abs(expected).max()
            print(f"  {name:23} {error:8.1e} largest error of the labels' gradient, relative")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear_cross_entropy")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="N,V,d")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tile-bytes", type=int, help="of the fused loss; the default is its own")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        tensorflow_function(options.peak, "1024,4096,32", options.seed)()  # libraries, compiler
        step = tensorflow_function(options.peak, options.sizes[0], options.seed, options.tile_bytes)
        print(peak_memory(step))
        return
    print(describe(), f"seed {options.seed}", sep=", ")
    for size in options.sizes:
        measure(size, options.rounds, options.seed, options.tile_bytes)


if __name__ == "__main__":
    main()
