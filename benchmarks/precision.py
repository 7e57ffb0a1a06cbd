"""Errors of the fused loss against float64 under each dtype policy, on the present device.

    KERAS_BACKEND=jax python -m benchmarks.precision [--json FILE]

Prints a table, writes it to a file if one is given, and fails if an error is above its bound.

An error is the largest deviation of a loss or gradient, relative to the largest entry of the exact
one. Inputs are float32, so errors in half precision include the rounding of inputs. Needs JAX and
Keras, no TensorFlow.
"""

import argparse
import datetime
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")

import numpy as np

from benchmarks.accelerator.loss_jax import float64_loss

SIZE = (769, 4099, 257)
# Dtype policy and `jax_default_matmul_precision`, and the largest error that is allowed.
POLICIES = {
    ("float32", "highest"): 1e-5,
    ("float32", "default"): 2e-2,
    ("mixed_bfloat16", "default"): 2e-2,
    ("mixed_float16", "default"): 2e-2,
}
RESULTS = ("loss", "d_hidden", "d_labels")
COLUMNS = [
    "device", "policy", "matmul precision", "loss", "gradient of hidden states", "of labels",
]  # fmt: skip


def make_case(size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hidden states `[N, d]`, labels `[V, d]` and targets `[N]`."""
    n, v, d = size
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, d)).astype("float32")
    labels = (rng.normal(size=(v, d)) / np.sqrt(d)).astype("float32")
    return hidden, labels, rng.integers(0, v, n).astype("int32")


def loss_and_gradients(policy: str, precision: str, case: tuple) -> tuple:
    """Loss and gradients of an output layer without bias, for hidden states and labels."""
    import jax
    import keras

    import keras_drill

    hidden, labels, targets = case
    head = keras_drill.OutputLayer(
        len(labels), embedding_dim=labels.shape[1], use_bias=False, dtype=policy
    )
    head.build(hidden.shape)

    def loss(hidden, labels):
        with keras.StatelessScope(state_mapping=[(head.label_embeddings, labels)]):
            return head.loss(hidden, targets)

    with jax.default_matmul_precision(precision):
        value, gradients = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(hidden, labels)
    return value, *gradients


def measure(size: tuple[int, int, int] = SIZE) -> dict[str, dict[str, float]]:
    """Errors of loss and gradients by "policy, precision"."""
    case = make_case(size)
    exact = float64_loss(*case)
    found = {}
    for policy, precision in POLICIES:
        results = loss_and_gradients(policy, precision, case)
        found[f"{policy}, {precision}"] = {
            name: float(np.abs(np.asarray(a, "float64") - b).max() / np.abs(b).max())
            for name, a, b in zip(RESULTS, results, exact, strict=True)
        }
    return found


def above_bounds(errors: dict[str, dict[str, float]]) -> dict[str, float]:
    """The largest error of each policy that is above its bound."""
    bounds = {f"{policy}, {precision}": x for (policy, precision), x in POLICIES.items()}
    largest = {name: max(some.values()) for name, some in errors.items()}
    return {name: error for name, error in largest.items() if not error <= bounds[name]}


def tabulate(device: str, errors: dict[str, dict[str, float]]) -> list[list[str]]:
    """Rows of the table, with `COLUMNS`."""
    return [
        [device, *name.split(", "), *(f"{found[x]:.1e}" for x in RESULTS)]
        for name, found in errors.items()
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="a file for the errors")
    args = parser.parse_args(argv)
    import jax
    import keras

    device, errors = jax.devices()[0].device_kind, measure()
    rows = tabulate(device, errors)
    for row in (COLUMNS, *rows):
        print(" | ".join(row))
    if args.json:
        record = {
            "command": "KERAS_BACKEND=jax python -m benchmarks.precision --json FILE",
            "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}",
            "device": device,
            "versions": {"jax": jax.__version__, "keras": keras.__version__},
            "size": SIZE,
            "errors": errors,
            "tables": {"errors": {"columns": COLUMNS, "rows": rows}},
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n")
    above = above_bounds(errors)
    if above:
        sys.exit(f"Errors above their bounds: {above}")


if __name__ == "__main__":
    main()
