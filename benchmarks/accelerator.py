"""The fused loss on a GPU or TPU, beside what it is compared with there.

    KERAS_BACKEND=jax python -m benchmarks.accelerator [--sizes N,V,d ...] [--tile-mib M ...]
        [--dtypes bfloat16 float32] [--heads N,V,d] [--no-torch] [--rounds R] [--json FILE]

For every size and dtype: milliseconds of the loss and its gradients, TFLOP/s of the three matrix
products that every exact gradient needs, and memory beyond arguments and results as XLA plans it:
of the fused loss, of all logits in memory under XLA, and of the three bare products. PyTorch's
linear layer with cross-entropy, eager and compiled, stands beside them where torch has a GPU. With
`--heads` also each output layer over a tied softmax.

Before anything is timed, loss and gradients are compared with float64 at a small size. Needs
JAX and Keras, no TensorFlow. On a CPU it runs at small sizes, for its test.
"""

import argparse
import datetime
import functools
import json
import math
import os
import statistics
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

SIZES = ("8192,128256,4096", "32768,128256,2560", "8192,262144,2304", "4096,33278,400")
DTYPES = ("bfloat16", "float32")
# Relative to the largest entry of a gradient; what a GPU's products of float32 are is up to JAX.
TOLERANCES = {"bfloat16": 2e-2, "float32": 1e-5}
CHECKED = "769,4099,257"


def make_arrays(size: str, dtype: str, seed: int = 0):
    """Hidden states `[N, d]`, labels `[V, d]` and targets `[N]` on the device."""
    import jax
    import jax.numpy as jnp

    n, v, d = map(int, size.split(","))
    keys = jax.random.split(jax.random.key(seed), 3)
    hidden = jax.random.normal(keys[0], (n, d), jnp.float32).astype(dtype)
    labels = (jax.random.normal(keys[1], (v, d), jnp.float32) / math.sqrt(d)).astype(dtype)
    return hidden, labels, jax.random.randint(keys[2], (n,), 0, v)


def fused(tile_bytes: int | None, hidden, labels, targets):
    """The package's loss."""
    import keras_drill

    return keras_drill.ops.linear_cross_entropy(hidden, labels, targets, tile_bytes=tile_bytes)


def all_logits(hidden, labels, targets):
    """The loss with all logits in memory."""
    import jax
    import jax.numpy as jnp

    logits = jnp.matmul(hidden, labels.T, preferred_element_type=jnp.float32)
    picked = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return (jax.nn.logsumexp(logits, axis=1) - picked).mean()


def three_products(hidden, labels, targets):
    """The products that an exact gradient needs, and nothing else."""
    import jax.numpy as jnp

    scores = jnp.matmul(hidden, labels.T)
    return jnp.matmul(scores, labels), jnp.matmul(scores.T, hidden)


def jax_rows(tiles: list[int | None]) -> dict:
    """Functions of hidden states, labels and targets that return loss and gradients, by name."""
    import jax

    rows = {}
    for mib in tiles:
        name = "fused" if mib is None else f"fused, tiles of {mib} MiB"
        loss = functools.partial(fused, None if mib is None else mib * 2**20)
        rows[name] = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
    rows["all logits, XLA"] = jax.jit(jax.value_and_grad(all_logits, argnums=(0, 1)))
    rows["three products"] = jax.jit(three_products)
    return rows


def time_rows(rows: dict, arguments: tuple, rounds: int) -> dict:
    """Milliseconds (the median) and MiB beyond arguments and results of each, or why not."""
    import jax

    compiled, found = {}, {}
    for name, function in rows.items():
        try:
            compiled[name] = function.lower(*arguments).compile()
            jax.block_until_ready(compiled[name](*arguments))
            memory = compiled[name].memory_analysis()
            found[name] = {"mib": memory.temp_size_in_bytes / 2**20}
        except Exception as error:  # out of memory, which every version of JAX words otherwise
            found[name] = {"skipped": str(error).splitlines()[0][:200]}
            compiled.pop(name, None)
    times = {name: [] for name in compiled}
    for _ in range(rounds):
        for name, function in compiled.items():
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            times[name].append(1e3 * (time.perf_counter() - start))
    for name, milliseconds in times.items():
        found[name]["ms"] = statistics.median(milliseconds)
    return found


def torch_rows(size: str, dtype: str, rounds: int) -> dict:
    """The same of PyTorch on its GPU; empty without one."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    n, v, d = map(int, size.split(","))
    options = {"device": "cuda", "dtype": getattr(torch, dtype)}
    hidden = torch.randn(n, d, **options).requires_grad_()
    labels = (torch.randn(v, d, **options) / math.sqrt(d)).requires_grad_()
    targets = torch.randint(0, v, (n,), device="cuda")

    def loss(hidden, labels):
        logits = torch.nn.functional.linear(hidden, labels)
        return torch.nn.functional.cross_entropy(logits.float(), targets)

    found = {}
    functions = {"all logits, PyTorch": loss, "all logits, PyTorch compiled": torch.compile(loss)}
    for name, function in functions.items():
        try:
            times = []
            for number in range(rounds + 2):
                hidden.grad = labels.grad = None
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                torch.cuda.synchronize()
                start = time.perf_counter()
                function(hidden, labels).backward()
                torch.cuda.synchronize()
                times.append(1e3 * (time.perf_counter() - start))
                if number == 0:
                    times.clear()
            gradients = (n + v) * d * hidden.element_size()
            extra = torch.cuda.max_memory_allocated() - before - gradients
            found[name] = {"ms": statistics.median(times), "mib": extra / 2**20}
        except Exception as error:
            found[name] = {"skipped": str(error).splitlines()[0][:200]}
        torch.cuda.empty_cache()
    return found


def float64_loss(hidden, labels, targets):
    """Loss and gradients in NumPy."""
    hidden, labels = (np.asarray(x, "float32").astype("float64") for x in (hidden, labels))
    rows = np.arange(len(hidden))
    scores = hidden @ labels.T
    scores -= scores.max(axis=1, keepdims=True)
    normalizer = np.log(np.exp(scores).sum(axis=1))
    loss = (normalizer - scores[rows, targets]).mean()
    derivative = np.exp(scores - normalizer[:, None])
    derivative[rows, targets] -= 1
    derivative /= len(hidden)
    return loss, derivative @ labels, derivative.T @ hidden


def check(dtype: str) -> dict:
    """Largest errors of the fused loss against float64, relative to the largest entry.

    Products of float32 are checked at JAX' highest precision; what its default costs is returned.

    Raises:
        SystemExit: One is too large.
    """
    import jax

    arrays = make_arrays(CHECKED, dtype)
    exact = float64_loss(*map(np.asarray, arrays))
    found = {}
    for precision in ("highest", "default"):
        with jax.default_matmul_precision(precision):
            loss, gradients = jax_rows([None])["fused"](*arrays)
        found[precision] = {
            name: float(np.abs(np.asarray(a, "float64") - b).max() / np.abs(b).max())
            for name, a, b in zip(
                ("loss", "d_hidden", "d_labels"), (loss, *gradients), exact, strict=True
            )
        }
    if max(found["highest"].values()) > TOLERANCES[dtype]:
        sys.exit(f"The fused loss in {dtype} is wrong here, so nothing is timed: {found}")
    return found


def head_rows(size: str) -> dict:
    """Loss and gradients of each output layer for its weights and hidden states."""
    import jax
    import keras

    import keras_drill

    _, v, d = map(int, size.split(","))

    def embedding():
        return keras.layers.Embedding(v, d)

    heads = {
        "tied": lambda: keras_drill.TiedOutput(v, embedding()),
        "softmax": lambda: keras_drill.SoftmaxOutput(v),
        "bilinear": lambda: keras_drill.BilinearOutput(v, embedding()),
        "DRILL, depth 4": lambda: keras_drill.DrillOutput(v, embedding(), depth=4, dropout=0.6),
        "KerBS, 3 senses": lambda: keras_drill.KernelizedBayesianSoftmax(v),
        "MoS, 15": lambda: keras_drill.MixtureOfSoftmaxes(v, embedding(), num_mixtures=15),
    }
    rows = {}
    for name, make in heads.items():
        head = make()
        head.build((None, d))
        variables = head.trainable_variables
        others = [x for x in head.variables if not any(x is y for y in variables)]

        def loss(values, rest, hidden, targets, head=head, variables=variables, others=others):
            mapping = [*zip(variables, values, strict=True), *zip(others, rest, strict=True)]
            with keras.StatelessScope(state_mapping=mapping):
                return head.loss(hidden, targets)

        function = jax.jit(jax.value_and_grad(loss, argnums=(0, 2)))
        rows[name] = function, [x.value for x in variables], [x.value for x in others]
    return rows


def time_heads(size: str, rounds: int) -> dict:
    """Milliseconds of each output layer, and the ratio to the tied one."""
    import keras

    hidden, _, targets = make_arrays(size, "bfloat16")
    keras.config.set_dtype_policy("mixed_bfloat16")
    found = {}
    for name, (function, values, rest) in head_rows(size).items():
        found |= {name: time_rows({name: function}, (values, rest, hidden, targets), rounds)[name]}
    keras.config.set_dtype_policy("float32")
    for figures in found.values():
        if "ms" in figures and "ms" in found["tied"]:
            figures["over tied"] = figures["ms"] / found["tied"]["ms"]
    return found


def report(size: str, dtype: str, found: dict) -> None:
    n, v, d = map(int, size.split(","))
    for name, figures in found.items():
        if "ms" not in figures:
            print(f"{size:>20} {dtype:9} {name:32} {figures['skipped']}", flush=True)
            continue
        figures["tflops"] = 6e-9 * n * v * d / figures["ms"]
        print(
            f"{size:>20} {dtype:9} {name:32} {figures['ms']:9.2f} ms {figures['tflops']:7.1f} "
            f"TFLOP/s {figures['mib']:10.0f} MiB",
            flush=True,
        )


def main(argv: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="N,V,d")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--tile-mib", nargs="*", type=int, default=[], help="other tiles, too")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--heads", metavar="N,V,d", help="each output layer at this size")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args(argv)
    import jax
    import keras

    device = jax.devices()[0]
    record: dict = {
        "command": " ".join(["python -m benchmarks.accelerator", *(argv or sys.argv[1:])]),
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}",
        "device": device.device_kind,
        "jax": jax.__version__,
        "keras": keras.__version__,
        "errors": {},
        "figures": {},
        "heads": {},
    }
    print(f"{device.device_kind}, JAX {jax.__version__}, Keras {keras.__version__}", flush=True)

    def write() -> None:
        if args.json:
            with open(args.json, "w") as file:
                json.dump(record, file, indent=2)

    for dtype in args.dtypes:
        record["errors"][dtype] = check(dtype)
        print(f"errors against float64, {dtype}: {record['errors'][dtype]}", flush=True)
    for dtype in args.dtypes:
        for size in args.sizes:
            arguments = make_arrays(size, dtype)
            found = time_rows(jax_rows([None, *args.tile_mib]), arguments, args.rounds)
            del arguments
            if not args.no_torch:
                found |= torch_rows(size, dtype, args.rounds)
            report(size, dtype, found)
            record["figures"][f"{size} {dtype}"] = found
            write()
    if args.heads:
        record["heads"][args.heads] = time_heads(args.heads, args.rounds)
        report(args.heads, "mixed", record["heads"][args.heads])
        write()
    return record


if __name__ == "__main__":
    main()
