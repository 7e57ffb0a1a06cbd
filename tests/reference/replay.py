"""Replays reference cases against the package: `python -m tests.reference.replay FILE.npz ...`.

A case is an `.npz` of inputs, parameters and the results that an original implementation computed
from them; the start of its name is its kind. For every file and precision the largest error of
each result is printed, relative to the result's largest magnitude. The exit status is 1 if an error
is above the tolerance, 2 if a file cannot be replayed.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import keras
import numpy as np

from tests.reference.replay_attention import replay_attention
from tests.reference.replay_beam import replay_beam
from tests.reference.replay_drill import replay_drill
from tests.reference.replay_kerbs import replay_kerbs, replay_kerbs_kernel
from tests.reference.replay_mos import replay_mos
from tests.reference.replay_reallocation import replay_reallocation

# Kind (a file is of the longest that its name starts with): its replay, which maps (case, dtype) to
# {result: (value, expected)}, and its tolerances.
KINDS: dict[str, tuple[Callable, dict[str, float]]] = {
    "attention": (replay_attention, {"float64": 1e-6, "float32": 1e-6}),
    "beam": (replay_beam, {"float32": 1e-6}),
    "coverage": (replay_beam, {"float32": 1e-6}),
    "drill": (replay_drill, {"float64": 1e-9, "float32": 2e-5}),
    "kerbs_paper_kernel": (replay_kerbs_kernel, {"float64": 1e-9, "float32": 5e-6}),
    "kerbs_paper_": (partial(replay_kerbs, variant="paper"), {"float64": 1e-9, "float32": 2e-5}),
    # The authors' float32 `(exp(t) - 1) / t - 1` cancels for small t: off by 1.4e-3 at t = 0.008,
    # and by up to 2.11e-3 in the cases.
    "kerbs_reference_": (
        partial(replay_kerbs, variant="reference"),
        {"float64": 3e-3, "float32": 3e-3},
    ),
    "mos": (replay_mos, {"float64": 1e-9, "float32": 2e-5}),
    "reallocation": (replay_reallocation, {"float64": 0.0}),
}
# Replays of what is computed in NumPy, whatever the backend.
IN_NUMPY = (replay_reallocation,)


def relative_error(actual, expected) -> float:
    """Largest deviation over the largest magnitude of what was expected."""
    actual, expected = np.asarray(actual, "float64"), np.asarray(expected, "float64")
    if actual.shape != expected.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    error = np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-30)
    return float("inf") if np.isnan(error) else float(error)


def kind_of(path: Path) -> str | None:
    """The kind of a file, by its name; `None` where it is not replayed."""
    return max((kind for kind in KINDS if path.name.startswith(kind)), key=len, default=None)


def replay(path: Path) -> bool:
    """Replays one file, prints its errors and says whether all are within tolerance."""
    kind = kind_of(path)
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
        if dtype == "float64" and keras.backend.backend() == "jax" and run not in IN_NUMPY:
            print(f"{path.name:24} float64  not replayed: Keras on JAX computes in float32")
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
    parser.add_argument(
        "--skip-unknown", action="store_true", help="name and leave out files of other kinds"
    )
    options = parser.parse_args(arguments)
    skipped = [path for path in options.files if options.skip_unknown and kind_of(path) is None]
    for path in skipped:
        print(f"{path.name:24} skipped: nothing replays cases of its kind")
    try:
        results = [replay(path) for path in options.files if path not in skipped]
    except (OSError, KeyError, ValueError) as error:
        print(f"replay: error: {error}", file=sys.stderr)
        return 2
    counts = f"{sum(results)} passed, {len(results) - sum(results)} failed"
    print(f"{counts}, {len(skipped)} skipped" if skipped else counts)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
