"""Replays reference cases against the package: `python -m tests.reference.replay FILE.npz ...`.

A case is an `.npz` of inputs, parameters and the results that an original implementation computed
from them; the start of its name is its kind. For every file and precision the largest error of
each result is printed, relative to the result's largest magnitude. The exit status is 1 if an error
is above the tolerance, 2 if a file cannot be replayed.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from tests.reference.replay_drill import replay_drill

# Kind: its replay, which maps (case, dtype) to {result: (value, expected)}, and its tolerances.
KINDS: dict[str, tuple[Callable, dict[str, float]]] = {
    "drill": (replay_drill, {"float64": 1e-9, "float32": 2e-5}),
}


def relative_error(actual, expected) -> float:
    """Largest deviation over the largest magnitude of what was expected."""
    actual, expected = np.asarray(actual, "float64"), np.asarray(expected, "float64")
    if actual.shape != expected.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    error = np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-30)
    return float("inf") if np.isnan(error) else float(error)


def replay(path: Path) -> bool:
    """Replays one file, prints its errors and says whether all are within tolerance."""
    kind = next((kind for kind in KINDS if path.name.startswith(kind)), None)
    if kind is None:
        raise ValueError(
            f"the name of a reference case must begin with one of {sorted(KINDS)}. "
            f"Received: {path.name}"
        )
    with np.load(path) as archive:
        case = {name: archive[name] for name in archive.files}
    run, tolerances = KINDS[kind]
    passed = True
    for dtype, tolerance in tolerances.items():
        if dtype == "float64" and keras.backend.backend() == "jax":
            print(f"{path.name:24} float64  not replayed: Keras' tanh on JAX is float32")
            continue
        for name, (value, expected) in run(case, dtype).items():
            error = relative_error(value, expected)
            verdict = "ok" if error <= tolerance else f"ABOVE {tolerance:g}"
            passed &= error <= tolerance
            print(f"{path.name:24} {dtype:8} {name:24} {error:9.2e}  {verdict}")
    return passed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reference.replay", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.npz")
    try:
        results = [replay(path) for path in parser.parse_args(arguments).files]
    except (OSError, KeyError, ValueError) as error:
        print(f"replay: error: {error}", file=sys.stderr)
        return 2
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
