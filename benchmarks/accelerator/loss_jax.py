"""Measures the fused loss and its alternatives under JAX."""

import functools
import math
from collections.abc import Iterator

import numpy as np

from benchmarks.accelerator.measure_jax import check_errors, device, measure, relative_error
from benchmarks.accelerator.processes import attempt

__all__ = ["device", "rows"]

# Relative to the largest entry of a gradient; what a GPU's products of float32 are is up to JAX.
TOLERANCES = {"bfloat16": 2e-2, "float32": 1e-5}
CHECKED = "769,4099,257"


def rows(size: str, dtype: str, tiles: list, rounds: int, is_checked: bool) -> Iterator:
    """Milliseconds of loss and gradients, TFLOP/s of the products, MiB, for each way.

    Args:
        size: "N,V,d".
        dtype: That of hidden states and labels.
        tiles: MiB of other tiles than the default ones.
        rounds: How often each is timed.
        is_checked: Whether loss and gradients are compared with float64 first.
    """
    if is_checked:
        yield f"errors, {dtype}", {"errors": check(dtype)}
    n, v, d = map(int, size.split(","))
    arguments = make_arrays(size, dtype)
    for name, (function, num_products) in functions(tiles).items():
        found = attempt(measure, function, arguments, rounds)
        if "ms" in found:
            found["tflops"] = 2e-9 * num_products * n * v * d / found["ms"]
        yield name, found


def make_arrays(size: str, dtype: str, seed: int = 0):
    """Hidden states `[N, d]`, labels `[V, d]` and targets `[N]` on the device."""
    import jax
    import jax.numpy as jnp

    n, v, d = map(int, size.split(","))
    keys = jax.random.split(jax.random.key(seed), 3)
    hidden = jax.random.normal(keys[0], (n, d), jnp.float32).astype(dtype)
    labels = (jax.random.normal(keys[1], (v, d), jnp.float32) / math.sqrt(d)).astype(dtype)
    return hidden, labels, jax.random.randint(keys[2], (n,), 0, v)


def functions(tiles: list) -> dict:
    """Functions of hidden states, labels and targets, and how many products each needs."""
    import jax

    def with_gradients(loss, *argnums):
        return jax.jit(jax.value_and_grad(loss, argnums=argnums))

    found = {"fused": (with_gradients(fused, 0, 1), 3)}
    for mib in tiles:
        loss = functools.partial(fused, tile_bytes=mib * 2**20)
        found[f"fused, tiles of {mib} MiB"] = with_gradients(loss, 0, 1), 3
    frozen = functools.partial(fused, label_gradient=False)
    found["fused, frozen labels"] = with_gradients(frozen, 0), 2
    found["all logits, XLA"] = with_gradients(all_logits, 0, 1), 3
    found["tokamax"] = with_gradients(tokamax_loss, 0, 1), 3
    found["three products"] = jax.jit(three_products), 3
    return found


def fused(hidden, labels, targets, **options):
    """The package's loss."""
    import keras_drill

    return keras_drill.ops.linear_cross_entropy(hidden, labels, targets, **options)


def all_logits(hidden, labels, targets):
    """The loss with all logits in memory."""
    import jax
    import jax.numpy as jnp

    logits = jnp.matmul(hidden, labels.T, preferred_element_type=jnp.float32)
    picked = jnp.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
    return (jax.nn.logsumexp(logits, axis=1) - picked).mean()


def tokamax_loss(hidden, labels, targets):
    """The loss of tokamax, by the kernel that it chooses."""
    import tokamax

    return tokamax.linear_softmax_cross_entropy_loss(hidden, targets, labels.T, reduction="mean")


def three_products(hidden, labels, targets):
    """The products that an exact gradient needs, and nothing else."""
    import jax.numpy as jnp

    scores = jnp.matmul(hidden, labels.T)
    return jnp.matmul(scores, labels), jnp.matmul(scores.T, hidden)


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
    """Errors of the fused loss and its gradients against float64, by JAX' precision of products.

    Raises:
        ValueError: At the highest precision one is too large.
    """
    import jax

    arrays = make_arrays(CHECKED, dtype)
    exact = float64_loss(*map(np.asarray, arrays))
    found = {}
    for precision in ("highest", "default") if dtype == "float32" else ("highest",):
        with jax.default_matmul_precision(precision):
            loss, gradients = functions([])["fused"][0](*arrays)
        pairs = zip(("loss", "d_hidden", "d_labels"), (loss, *gradients), exact, strict=True)
        found[precision] = {name: relative_error(a, b) for name, a, b in pairs}
    check_errors(found["highest"], TOLERANCES[dtype])
    return found
