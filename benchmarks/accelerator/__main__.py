"""Measures speed and memory on a GPU or TPU, and compares the package with other libraries.

    python -m benchmarks.accelerator [--parts loss heads transformer awd-lstm decoding]
        [--sizes N,V,d ...] [--dtypes bfloat16 float32] [--tile-mib M ...] [--heads-size N,V,d]
        [--no-torch] [--rounds R] [--minutes M] [--quick] [--json FILE]

- loss: time of the fused loss and its gradients, TFLOP/s of the matrix products that exact
  gradients need, and memory beyond arguments and results. The comparison includes frozen labels,
  all logits in memory, the bare products, PyTorch, and the installed libraries.
- heads: time of each output layer relative to a tied softmax and to its number of operations.
- transformer, awd-lstm: whole training steps, compared with the same model in PyTorch.
- decoding: greedy and beam search, and the share of the memory bandwidth.

Every part compares its results with float64 or NumPy before measuring. Parts run in the order of
`--parts`. Each framework and size runs in a separate process. If a process fails, or the time of
`--minutes` is over, the table contains the reason instead. The JSON file is written after each row;
`python -m benchmarks.accelerator.table` converts it to Markdown. Only Keras and JAX are required.
"""

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from benchmarks.accelerator import table
from benchmarks.accelerator.processes import run_part

PARTS = tuple(table.TITLES)
SIZES = ("8192,128256,4096", "32768,128256,2560", "8192,262144,2304", "4096,33278,400")
DTYPES = ("bfloat16", "float32")
HEADS = ("tied", "softmax", "bilinear", "DRILL", "KerBS", "MoS")
TRANSFORMER = {"vocabulary": 32768, "width": 1024, "layers": 8, "batch": 16, "length": 512}
AWD_LSTM = {
    "vocabulary": 33278, "width": 400, "layers": 3, "units": 1150, "batch": 80, "length": 70,
}  # fmt: skip
QUICK = {"vocabulary": 53, "width": 16, "layers": 1, "units": 11, "batch": 2, "length": 5}
PACKAGES = ("jax", "keras", "torch", "liger-kernel", "cut-cross-entropy", "tokamax")


class Task(NamedTuple):
    """What one process does.

    Attributes:
        part, case: Where its rows belong.
        module: A module of this folder.
        arguments: Those of its `rows`.
    """

    part: str
    case: str
    module: str
    arguments: dict


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    deadline = time.monotonic() + 60 * args.minutes
    record = {
        "command": " ".join(["python -m benchmarks.accelerator", *(argv or sys.argv[1:])]),
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}",
        "device": "unknown device",
        "versions": {name: version_of(name) for name in PACKAGES},
        "rows": [],
    }
    for task in plan(args):
        start = time.monotonic()
        for name, found in run_task(task, deadline):
            if name == "device":
                record["device"] = found if task.module.endswith("jax") else record["device"]
                continue
            row = {"part": task.part, "case": task.case, "name": name, **found}
            row["seconds"] = round(time.monotonic() - start, 1)  # with its share of the start
            start = time.monotonic()
            record["rows"].append(row)
            print(json.dumps(row), flush=True)
            if args.json:
                write(args.json, record)
    print(f"\n{table.describe(record)}")


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="N,V,d of the loss")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--tile-mib", nargs="*", type=int, default=[], help="other tiles, too")
    parser.add_argument("--heads-size", default="8192,32768,1024", help="N,V,d of the heads")
    parser.add_argument("--heads", nargs="+", default=HEADS, choices=HEADS)
    parser.add_argument("--no-torch", action="store_true", help="leave out PyTorch")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=60, help="leave out what takes longer")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, to try it")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    args = parser.parse_args(argv)
    if args.quick:
        args.sizes, args.heads_size, args.rounds = ["53,101,7"], "53,101,7", 1
    return args


def plan(args: argparse.Namespace) -> Iterator[Task]:
    """The processes, in their order."""
    transformer, awd_lstm = (QUICK, QUICK) if args.quick else (TRANSFORMER, AWD_LSTM)
    rounds = args.rounds
    for part in args.parts:
        if part == "loss":
            for dtype in args.dtypes:
                for size in args.sizes:
                    options = {"size": size, "dtype": dtype, "rounds": rounds}
                    more = {"tiles": args.tile_mib, "is_checked": size == args.sizes[0]}
                    yield Task(part, f"{size} {dtype}", "loss_jax", {**options, **more})
                    if not args.no_torch:
                        yield Task(part, f"{size} {dtype}", "loss_torch", options)
        elif part == "heads":
            options = {"size": args.heads_size, "names": args.heads, "rounds": rounds}
            yield Task(part, args.heads_size, "heads", options)
        elif part == "decoding":
            length = 5 if args.quick else 128
            options = {"sizes": transformer, "batches": [1, 2] if args.quick else [1, 32]}
            options |= {"length": length, "rounds": min(rounds, 3)}
            yield Task(part, f"{describe(transformer)}, {length} tokens", "decoding", options)
        else:
            sizes = transformer if part == "transformer" else awd_lstm
            options = {"model": part, "heads": ["tied", "drill"], "sizes": sizes}
            options["rounds"] = min(rounds, 3)
            yield Task(part, describe(sizes), "training_jax", options)
            if not args.no_torch:
                yield Task(part, describe(sizes), "training_torch", options)


def describe(sizes: dict) -> str:
    return ", ".join(f"{name} {size}" for name, size in sizes.items())


def run_task(task: Task, deadline: float) -> Iterator[tuple]:
    """Names and figures of a task's rows, or why there are none."""
    if time.monotonic() >= deadline:
        yield task.module, {"skipped": "the time was up"}
    elif task.module.endswith("torch") and version_of("torch") == "not installed":
        yield task.module, {"skipped": "torch is not installed"}
    else:
        yield from run_part(task.module, task.arguments, deadline)


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def write(path: Path, record: dict) -> None:
    """Writes beside the file and renames, so that there is always a whole one."""
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")
    os.replace(temporary, path)


if __name__ == "__main__":
    main()
