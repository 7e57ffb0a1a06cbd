"""Measures TensorFlow's compiled program of the fused loss on a GPU, run by JAX.

    KERAS_BACKEND=tensorflow python -m benchmarks.tensorflow_program trace FOLDER
    KERAS_BACKEND=jax python -m benchmarks.tensorflow_program run FOLDER [--rounds R] [--json FILE]

TensorFlow's CPU build can trace a program for a GPU but cannot run it there. The first command
needs TensorFlow and no GPU. It traces loss and gradients of a softmax and of KerBS with
`tf.function(jit_compile=True)`, as for a GPU, and writes the programs to FOLDER: XLA's HLO of a
small size with arguments and exact results, and of a large size. The second command needs JAX and
no TensorFlow. XLA compiles the programs for the present device. The small ones are compared with
the exact results, then the large ones are timed beside the same loss compiled by JAX.
"""

import argparse
import concurrent.futures
import datetime
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

import keras_drill
from keras_drill.ops.device_kind import assume_device

HEADS: dict[str, Callable[..., keras_drill.OutputLayer]] = {
    "softmax": lambda v, **options: keras_drill.SoftmaxOutput(v, **options),
    "kerbs": lambda v, **options: keras_drill.KernelizedBayesianSoftmax(v, **options),
}
SMALL = "257,1009,131"
LARGE = {"softmax": "32768,128256,2560", "kerbs": "8192,32768,1024"}
POLICIES = ("float32", "mixed_bfloat16")
# Relative to the largest entry. On a GPU XLA may compute products of float32 in TF32.
TOLERANCE = 2e-2


class Step(NamedTuple):
    """Loss of an output layer as a function of all that it reads.

    Attributes:
        loss: Maps values of the variables, hidden states and targets to the loss.
        variables: What gets a gradient, as the hidden states do.
        others: Further variables.
    """

    loss: Callable
    variables: list[keras.Variable]
    others: list[keras.Variable]


def make_step(kind: str, size: str, policy: str) -> Step:
    """Builds an output layer and its loss.

    Args:
        kind: A key of `HEADS`.
        size: "N,V,d".
        policy: Dtype policy.
    """
    _, v, d = map(int, size.split(","))
    keras.utils.set_random_seed(0)
    head = HEADS[kind](v, dtype=policy)
    head.build((None, d))
    variables = list(head.trainable_variables)
    others = [x for x in head.variables if not any(x is y for y in variables)]

    def loss(values: Sequence, rest: Sequence, hidden: Any, targets: Any) -> Any:
        mapping = [*zip(variables, values, strict=True), *zip(others, rest, strict=True)]
        with keras.StatelessScope(state_mapping=mapping):
            return head.loss(hidden, targets)

    return Step(loss, variables, others)


def make_inputs(size: str, policy: str) -> tuple[Any, Any]:
    """Hidden states `[N, d]` in the compute dtype, and targets `[N]`."""
    n, v, d = map(int, size.split(","))
    dtype = keras.dtype_policies.get(policy).compute_dtype
    hidden = keras.random.normal((n, d), seed=1)
    targets = keras.random.randint((n,), 0, v, seed=2)
    return keras.ops.cast(hidden, dtype), keras.ops.cast(targets, "int32")


def traced(step: Step, size: str, policy: str) -> Callable:
    """TensorFlow's compiler of loss and gradients, as for a GPU: a function of the `stage`."""
    import tensorflow as tf

    n, _, d = map(int, size.split(","))

    def function(*arguments):
        values = arguments[: len(step.variables)]
        *rest, hidden, targets = arguments[len(step.variables) :]
        with tf.GradientTape() as tape:
            tape.watch([*values, hidden])
            loss = step.loss(values, rest, hidden, targets)
        gradients = tape.gradient(loss, [*values, hidden])
        return loss, *map(tf.convert_to_tensor, gradients)

    compute_dtype = keras.dtype_policies.get(policy).compute_dtype
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in [*step.variables, *step.others]]
    specs += [tf.TensorSpec((n, d), compute_dtype), tf.TensorSpec((n,), "int32")]
    compiled = tf.function(function, jit_compile=True, autograph=False)
    with assume_device("gpu"):
        return compiled.experimental_get_compiler_ir(*specs)


def exact_results(kind: str, size: str, step: Step, hidden: Any, targets: Any) -> list[np.ndarray]:
    """Loss and gradients for the weights and inputs of `step`, computed in float64."""
    import tensorflow as tf

    exact = make_step(kind, size, "float64")
    read = keras.ops.convert_to_numpy
    values = [tf.constant(read(x), "float64") for x in step.variables]
    rest = [tf.cast(read(x), y.dtype) for x, y in zip(step.others, exact.others, strict=True)]
    hidden = tf.cast(hidden, "float64")
    with tf.GradientTape() as tape:
        tape.watch([*values, hidden])
        loss = exact.loss(values, rest, hidden, targets)
    gradients = tape.gradient(loss, [*values, hidden])
    return [np.asarray(tf.convert_to_tensor(x), "float32") for x in (loss, *gradients)]


def trace(folder: Path, small: str, large: dict[str, str]) -> None:
    """Writes the programs, and arguments and results of the small ones."""
    folder.mkdir(parents=True, exist_ok=True)
    programs = []
    for kind in HEADS:
        cases = [(small, policy) for policy in POLICIES] + [(large[kind], POLICIES[-1])]
        for number, (size, policy) in enumerate(cases):
            name = f"{kind}-{number}"
            step = make_step(kind, size, policy)
            program = traced(step, size, policy)(stage="hlo_serialized")
            (folder / f"{name}.hlo").write_bytes(program)
            programs.append({"name": name, "head": kind, "size": size, "policy": policy})
            if number == len(cases) - 1:
                continue
            hidden, targets = make_inputs(size, policy)
            read = keras.ops.convert_to_numpy
            arguments = [read(x) for x in [*step.variables, *step.others]]
            arguments += [read(keras.ops.cast(hidden, "float32")), read(targets)]
            np.savez_compressed(
                folder / f"{name}.npz",
                **{f"argument_{i:02}": x for i, x in enumerate(arguments)},
                **{
                    f"result_{i:02}": x
                    for i, x in enumerate(exact_results(kind, size, step, hidden, targets))
                },
            )
    (folder / "programs.json").write_text(json.dumps(programs, indent=1))


def find_obstacles(hlo: str) -> list[str]:
    """What is slow or impossible on a GPU in the text of an HLO program.

    Float64, calls of the host, and custom calls: what TensorFlow on a CPU calls exists there only.
    """
    found = sorted(set(re.findall(r"\bf64\[|\bc128\[", hlo)))
    found += sorted(set(re.findall(r'custom_call_target="[^"]*"', hlo)))
    hosts = r" (infeed|outfeed|send|recv|send-done|recv-done)\("
    return found + sorted(set(re.findall(hosts, hlo)))


def large_products(hlo: str, least: int) -> list[str]:
    """Shapes of the results of matrix products with at least so many entries, operands or results.

    A product in the body of a loop is counted once.
    """
    shapes = dict(re.findall(r"\n\s*(?:ROOT )?%?([\w.-]+) = (\w+\[[\d,]*\])", hlo))
    found = []
    for result, operands in re.findall(r" = (\w+\[[\d,]*\])\S* dot\(([^)]*)\)", hlo):
        names = [x.split()[-1].lstrip("%") for x in operands.split(", ")]
        # Thin products, of a matrix and a vector, are passes over memory.
        if min(_entries(shapes.get(name, "")) for name in names) >= least:
            found.append(result)
    return found


def _entries(shape: str) -> int:
    sizes = re.findall(r"\d+", shape.partition("[")[2])
    return int(np.prod([int(x) for x in sizes])) if sizes else 0


class LoadedProgram:
    """An HLO program, compiled for the first device of JAX."""

    def __init__(self, file: Path):
        import jax

        # No public interface of JAX takes HLO.
        from jaxlib import _hlo, _jax

        module = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(file.read_bytes()))
        device = jax.devices()[0]
        self._executable = device.client.compile_and_load(
            module, _jax.DeviceList((device,)), _jax.CompileOptions()
        )
        self.mib = self._executable.get_compiled_memory_stats().temp_size_in_bytes / 2**20

    def __call__(self, *arguments: Any) -> list:
        results = self._executable.execute_sharded(list(arguments))
        return [shards[0] for shards in results.disassemble_into_single_device_arrays()]


def jax_step(step: Step) -> Callable:
    """Loss and gradients, compiled by JAX, as a function of the program's arguments."""
    import jax

    def function(*arguments):
        values = list(arguments[: len(step.variables)])
        *rest, hidden, targets = arguments[len(step.variables) :]
        loss = jax.value_and_grad(step.loss, argnums=(0, 2))
        value, (gradients, d_hidden) = loss(values, rest, hidden, targets)
        return [value, *gradients, d_hidden]

    return jax.jit(function)


def relative_errors(results: Sequence, exact: Sequence[np.ndarray]) -> list[float]:
    """Largest deviation of each result, relative to its largest entry."""
    return [
        float(np.abs(np.asarray(a, "float64") - b).max() / max(np.abs(b).max(), 1e-30))
        for a, b in zip(results, exact, strict=True)
    ]


def check(folder: Path, program: dict, loaded: LoadedProgram) -> float:
    """The largest error of a program of a small size against float64.

    Raises:
        SystemExit: It is too large.
    """
    import jax
    import jax.numpy as jnp

    with np.load(folder / f"{program['name']}.npz") as archive:
        arguments = [archive[x] for x in sorted(archive.files) if x.startswith("argument")]
        exact = [archive[x] for x in sorted(archive.files) if x.startswith("result")]
    dtype = keras.dtype_policies.get(program["policy"]).compute_dtype
    arguments[-2] = jnp.asarray(arguments[-2]).astype(dtype)
    errors = relative_errors(loaded(*map(jax.device_put, arguments)), exact)
    if not max(errors) <= TOLERANCE:
        sys.exit(f"A program is wrong here, so nothing is timed: {program}, errors {errors}")
    return max(errors)


def time_programs(program: dict, loaded: LoadedProgram, rounds: int) -> dict:
    """Milliseconds (the median) and MiB beyond arguments and results of both programs."""
    import jax

    step = make_step(program["head"], program["size"], program["policy"])
    arguments = [x.value for x in [*step.variables, *step.others]]
    arguments += make_inputs(program["size"], program["policy"])
    compiled = jax_step(step).lower(*arguments).compile()
    functions = {"TensorFlow": loaded, "JAX": compiled}
    memory = compiled.memory_analysis().temp_size_in_bytes / 2**20
    found = {"TensorFlow": {"mib": loaded.mib}, "JAX": {"mib": memory}}
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            if number:  # the first round warms up
                times[name].append(1e3 * (time.perf_counter() - start))
    for name, milliseconds in times.items():
        found[name]["ms"] = statistics.median(milliseconds)
    return found


def run(folder: Path, rounds: int) -> dict:
    """Checks the small programs, then times the large ones, and prints both."""
    import jax

    device = jax.devices()[0].device_kind
    record: dict = {"device": device, "jax": jax.__version__, "errors": {}, "figures": {}}
    programs = json.loads((folder / "programs.json").read_text())
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        loaded = list(pool.map(lambda x: LoadedProgram(folder / f"{x['name']}.hlo"), programs))
    print(f"compiled in {time.perf_counter() - start:.1f} s", flush=True)
    is_small = [(folder / f"{x['name']}.npz").exists() for x in programs]
    # The small ones first.
    for small, program, executable in sorted(
        zip(is_small, programs, loaded, strict=True), key=lambda x: not x[0]
    ):
        label = f"{program['head']} {program['size']} {program['policy']}"
        if small:
            record["errors"][label] = check(folder, program, executable)
            print(f"{label}: largest error {record['errors'][label]:.1e}", flush=True)
            continue
        record["figures"][label] = found = time_programs(program, executable, rounds)
        for name, figures in found.items():
            print(f"{label}, {name}: {figures['ms']:.2f} ms, {figures['mib']:.0f} MiB", flush=True)
    return record


def tabulate(figures: dict[str, dict]) -> dict:
    """Columns and rows of the large programs."""
    rows = [
        [label, name, round(found["ms"], 1), round(found["mib"])]
        for label, programs in figures.items()
        for name, found in programs.items()
    ]
    return {"columns": ["loss and gradients", "program of", "ms", "MiB"], "rows": rows}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    tracing = commands.add_parser("trace", help="write the programs, on TensorFlow")
    running = commands.add_parser("run", help="compare and time the programs, on JAX")
    for command in (tracing, running):
        command.add_argument("folder", type=Path)
    tracing.add_argument("--small", default=SMALL, help="N,V,d")
    for kind, size in LARGE.items():
        tracing.add_argument(f"--{kind}", default=size, help="N,V,d of the large program")
    running.add_argument("--rounds", type=int, default=10)
    running.add_argument("--json", type=Path, help="a file for all figures")
    args = parser.parse_args(argv)
    backend = {"trace": "tensorflow", "run": "jax"}[args.command]
    if keras.backend.backend() != backend:
        parser.error(
            f"{args.command} needs Keras' backend {backend}: set KERAS_BACKEND={backend}. "
            f"Received: {keras.backend.backend()}"
        )
    if args.command == "trace":
        trace(args.folder, args.small, {kind: getattr(args, kind) for kind in LARGE})
        return
    record = run(args.folder, args.rounds)
    if args.json:
        record |= {
            "command": "KERAS_BACKEND=jax python -m benchmarks.tensorflow_program run FOLDER",
            "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}",
            "tables": {"times": tabulate(record["figures"])},
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
