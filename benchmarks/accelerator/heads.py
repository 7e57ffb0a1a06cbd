"""Measures the time and operations of each output layer relative to a tied softmax."""

from collections.abc import Iterator

import numpy as np

from benchmarks.accelerator.loss_jax import make_arrays
from benchmarks.accelerator.measure_jax import check_errors, device, measure, stateless
from benchmarks.accelerator.processes import attempt

__all__ = ["device", "rows"]

DEPTH, SENSES, MIXTURES = 4, 3, 15
CHECKED = "61,101,13"
# A quotient of differences in float32 is right to 1e-3 or so.
TOLERANCES = {"loss": 1e-4, "gradient": 2e-2}


def rows(size: str, names: list, rounds: int) -> Iterator:
    """Milliseconds of loss and gradients for weights and hidden states, in mixed bfloat16.

    Every head's loss and its gradient are first compared, in float32 and at a small size, with the
    NumPy loss of its log-probabilities and with differences of that.
    """
    import keras

    n, v, d = map(int, size.split(","))
    tied = {}
    for name in names:
        keras.config.set_dtype_policy("float32")
        found = attempt(check, name)
        if "skipped" not in found:
            keras.config.set_dtype_policy("mixed_bfloat16")
            operations = count_operations(name, n, v, d)
            found |= attempt(_measure, name, size, rounds)
        if "ms" in found:
            found["tflops"] = 1e-9 * operations / found["ms"]
            tied = tied or {"ms": found["ms"], "operations": operations}
            found["over_tied"] = found["ms"] / tied["ms"]
            found["over_operations"] = found["over_tied"] / (operations / tied["operations"])
        yield name, found


def make_head(name: str, v: int, d: int, is_checked: bool = False):
    """A built output layer of V words and width d; without dropout where it is checked."""
    import keras

    import keras_drill

    embedding = keras.layers.Embedding(v, d)
    head = {
        "tied": lambda: keras_drill.TiedOutput(v, embedding),
        "softmax": lambda: keras_drill.SoftmaxOutput(v),
        "bilinear": lambda: keras_drill.BilinearOutput(v, embedding),
        "DRILL": lambda: keras_drill.DrillOutput(
            v, embedding, depth=DEPTH, dropout=0.0 if is_checked else 0.6
        ),
        "KerBS": lambda: keras_drill.KernelizedBayesianSoftmax(v, num_senses=SENSES * v),
        "MoS": lambda: keras_drill.MixtureOfSoftmaxes(v, embedding, num_mixtures=MIXTURES),
    }[name]()
    head.build((None, d))
    return head


def count_operations(name: str, n: int, v: int, d: int) -> int:
    """Operations of the matrix products of `[rows, d]` and `[columns, d]`, each with two more for
    its gradients: 6 rows columns d. What is computed element by element counts nothing."""
    products = {
        "bilinear": [(n, v), (v, d)],
        "DRILL": [(n, v)] + DEPTH * [(v, d)],
        "KerBS": [(n, SENSES * v)],
        "MoS": [(MIXTURES * n, v), (n, MIXTURES * d)],
    }.get(name, [(n, v)])
    return sum(6 * rows * columns * d for rows, columns in products)


def _measure(name, size, rounds) -> dict:
    import jax

    _, v, d = map(int, size.split(","))
    head = make_head(name, v, d)
    variables = head.trainable_variables
    others = [x for x in head.variables if all(x is not y for y in variables)]
    called = stateless(head.loss, [*variables, *others])

    def loss(values, rest, hidden, targets):
        return called([*values, *rest], hidden, targets)[0]

    hidden, _, targets = make_arrays(size, "bfloat16")
    arguments = [x.value for x in variables], [x.value for x in others], hidden, targets
    return measure(jax.jit(jax.value_and_grad(loss, argnums=(0, 2))), arguments, rounds)


def check(name: str) -> dict:
    """Errors of the head's loss, and of its derivative along the gradient for hidden states."""
    import jax

    _, v, d = map(int, CHECKED.split(","))
    head = make_head(name, v, d, is_checked=True)
    hidden, _, targets = make_arrays(CHECKED, "float32")
    called = stateless(lambda hidden: (head.loss(hidden, targets), head(hidden)), head.variables)
    values = [x.value for x in head.variables]

    def loss(hidden):
        (value, log_probs), _ = called(values, hidden)
        return value, log_probs

    with jax.default_matmul_precision("highest"):
        function = jax.jit(jax.value_and_grad(loss, has_aux=True))
        (value, log_probs), gradient = function(hidden)

        def exact(log_probs):
            picked = np.asarray(log_probs, "float64")[np.arange(len(targets)), np.asarray(targets)]
            return -picked.mean()

        norm = float(np.sqrt(np.square(np.asarray(gradient, "float64")).sum()))
        direction = gradient / norm
        step = 0.05
        ends = [exact(function(hidden + sign * step * direction)[0][1]) for sign in (1, -1)]
    errors = {
        "loss": abs(float(value) / exact(log_probs) - 1),
        "gradient": abs((ends[0] - ends[1]) / (2 * step) / norm - 1),
    }
    for error, tolerance in TOLERANCES.items():
        check_errors({error: errors[error]}, tolerance)
    return {"errors": errors}
