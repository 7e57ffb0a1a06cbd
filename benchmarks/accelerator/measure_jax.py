"""Common functions of the parts that run on JAX."""

import statistics
import time


def device() -> str:
    """The device that JAX computes on."""
    import jax

    return jax.devices()[0].device_kind


def measure(function, arguments: tuple, rounds: int) -> dict:
    """Milliseconds (the median) of a jitted function, and MiB beyond arguments and results."""
    import jax

    compiled = function.lower(*arguments).compile()
    jax.block_until_ready(compiled(*arguments))
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(1e3 * (time.perf_counter() - start))
    memory = compiled.memory_analysis().temp_size_in_bytes / 2**20
    return {"ms": statistics.median(times), "mib": memory}


def stateless(function, variables: list):
    """`function` of other values of `variables`, a list, and of its own arguments.

    Returns the function's result and the variables' new values.
    """
    import keras

    def called(values, *arguments):
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope:
            result = function(*arguments)
        values = [scope.get_current_value(x) for x in variables]
        return result, [
            old.value if new is None else new for old, new in zip(variables, values, strict=True)
        ]

    return called


def relative_error(found, exact) -> float:
    """The largest error, relative to the largest entry."""
    import numpy as np

    found, exact = np.asarray(found, "float64"), np.asarray(exact, "float64")
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def check_errors(errors: dict, tolerance: float) -> dict:
    """`errors`, if none is above the tolerance.

    Raises:
        ValueError: One is, or is no number. Then nothing is timed.
    """
    if not all(error <= tolerance for error in errors.values()):
        raise ValueError(f"wrong here, so not timed: {errors}, tolerance {tolerance}")
    return errors
