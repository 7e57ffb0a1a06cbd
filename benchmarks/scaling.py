"""Measures steps on one device, two replicas and two workers, and projects the speed of many.

    python -m benchmarks.scaling [--what steps bytes projection]

`steps`: a small AWD-LSTM with a tied head, in separate processes. Each replica and worker has as
many rows as the one device, and one computing thread. All share this machine's cores, caches and
memory. The time is that of the fastest step, which other programs disturb least.

`bytes`: bytes that a worker passes to the collective operations of a step, counted in the traced
graph, for replicated heads. In a ring, each device sends 2 (N - 1) / N times as much.

`projection`: an estimate, not a measurement. The operations of a step divided by the speed of an
assumed accelerator, plus the bytes divided by the speed of assumed links, without overlap; see
`Accelerators`.
"""

import argparse
import dataclasses
import json
import os

from benchmarks.timing import describe, num_cores
from tests.distribute.workers import ended, started

MODULE = "benchmarks.scaling_worker"
# Name, strategy, replicas, computing threads of a process.
WAYS = (
    ("one device, 1 thread", "none", 1, 1),
    ("one device, 2 threads", "none", 1, 2),
    ("2 replicas", "mirrored", 2, 2),
    ("2 workers, 1 thread each", "multi-worker", 2, 1),
)
HEADS = ("softmax", "tied", "bilinear", "dual", "drill", "mixture", "kerbs")


@dataclasses.dataclass(frozen=True)
class Accelerators:
    """What the projection assumes of the hardware and the model.

    Args:
        operations: A second, that products of matrices reach on one (bfloat16).
        in_machine: Bytes a second from each accelerator to others of its machine.
        between: Bytes a second from each accelerator to those of other machines.
        machine: Accelerators of a machine.
        tokens: Of a batch, on each accelerator.
        width: Of embeddings and hidden states.
        layers: Of a Transformer, 12 width² parameters each.
    """

    operations: float = 4e14
    in_machine: float = 3e11
    between: float = 4e10
    machine: int = 8
    tokens: int = 16_384
    width: int = 1024
    layers: int = 24

    def compute_seconds(self, vocabulary: int, label_layers: int) -> float:
        """Of a step: forward and backward are three products with every weight and label.

        The label network reads all labels once a step on every accelerator, whatever the tokens.
        """
        weights = 12 * self.layers * self.width**2 + vocabulary * self.width
        labels = vocabulary * label_layers * self.width**2
        return 6 * (self.tokens * weights + labels) / self.operations

    def gradient_bytes(self, vocabulary: int, label_layers: int) -> int:
        """Float32, of all weights, a table of embeddings that is also the labels, and biases."""
        network = 12 * self.layers * self.width**2 + label_layers * (self.width**2 + self.width)
        return 4 * (network + vocabulary * (self.width + 1))

    def message_seconds(self, num_bytes: float, number: int) -> float:
        """Of an all-reduce: a ring in each machine, and one between machines for each part."""
        here = min(number, self.machine)
        machines = number // here
        seconds = 2 * (here - 1) / here * num_bytes / self.in_machine
        return seconds + 2 * (machines - 1) / machines * (num_bytes / here) / self.between


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = ("steps", "bytes", "projection")
    parser.add_argument("--what", nargs="+", default=kinds, choices=kinds)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rows", type=int, default=20, help="of a replica's batch")
    parser.add_argument("--length", type=int, default=35)
    parser.add_argument("--units", type=int, default=256)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=10_000, help="of the steps")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2**15, 2**17, 2**20])
    parser.add_argument("--heads", nargs="+", default=["tied", "drill"], choices=HEADS)
    parser.add_argument("--accelerators", type=int, nargs="+", default=[1, 8, 64, 512])
    arguments = parser.parse_args()
    print(describe())
    for what in arguments.what:
        {"steps": print_steps, "bytes": print_bytes, "projection": print_projection}[what](
            arguments
        )


def run(strategy, threads, options) -> dict:
    """What the first process says."""
    number = 2 if strategy == "multi-worker" else 1
    os.environ.update({"TF_NUM_INTRAOP_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)})
    with started(MODULE, [[strategy, json.dumps(options)]] * number) as processes:
        found = ended(processes)
    if any(status for status, _ in found):
        raise SystemExit("\n".join(said for _, said in found))
    return json.loads(found[0][1].splitlines()[-1])


def print_steps(arguments):
    options = {
        name: getattr(arguments, name)
        for name in ("rows", "length", "units", "width", "vocabulary", "steps")
    }
    rounds = [
        {name: run(way, threads, options)["seconds"] for name, way, _, threads in WAYS}
        for _ in range(arguments.rounds)
    ]
    tokens = arguments.rows * arguments.length
    print(
        f"\nsteps of {tokens} tokens a replica, V = {arguments.vocabulary:,}; "
        f"{num_cores()} cores are shared"
    )
    print(f"{'':26}{'ms a step':>12}{'tokens/s':>12}{'efficiency':>12}")
    for name, _, replicas, threads in WAYS:
        seconds = min(times[name] for times in rounds)
        # Beside as many devices of one thread as there are threads.
        ratio = min(times[WAYS[0][0]] for times in rounds) / seconds
        efficiency = ratio * replicas / max(replicas, threads)
        print(
            f"{name:26}{seconds * 1000:12.1f}{replicas * tokens / seconds:12.0f}{efficiency:12.3f}"
        )


def print_bytes(arguments):
    width = 64
    print(f"\nMB that a worker hands to collective operations in a step, width {width}")
    print(f"{'head':10}{'V':>10}{'counted':>12}{'gradients':>12}{'operations':>12}")
    for head in arguments.heads:
        for size in arguments.sizes:
            options = {"head": head, "rows": 2, "length": 8, "units": 64, "width": width}
            found = run("multi-worker", 1, {**options, "vocabulary": size, "steps": 0})
            counted, weights = found["bytes"] / 1e6, 4 * found["weights"] / 1e6
            print(
                f"{head:10}{size:10}{counted:12.3f}{weights:12.3f}{found['operations']:12}",
                flush=True,
            )


def print_projection(arguments):
    assumed = Accelerators()
    print(f"\nprojection, not measured: {assumed}")
    print(f"{'head':8}{'V':>10}{'GB':>7}{'number':>8}{'compute ms':>12}{'send ms':>9}{'eff.':>7}")
    for head, layers in (("tied", 0), ("drill", 4)):
        for size in arguments.sizes:
            compute = assumed.compute_seconds(size, layers)
            sent = assumed.gradient_bytes(size, layers)
            for number in arguments.accelerators:
                message = assumed.message_seconds(sent, number)
                print(
                    f"{head:8}{size:10}{sent / 1e9:7.2f}{number:8}{compute * 1000:12.1f}"
                    f"{message * 1000:9.1f}{compute / (compute + message):7.3f}"
                )


if __name__ == "__main__":
    main()
