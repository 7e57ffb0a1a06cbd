"""Logarithms of sums of exponentials against float64, wherever the largest entry stands."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.ops.log_normalizer import log_normalizer

N, V = 7, 1031


def sums_of(logits):
    logits = logits.astype("float64")
    top = logits.max(-1)
    return top + np.log(np.exp(logits - top[:, None]).sum(-1))


LOGITS = {
    "even": lambda rng: np.zeros((N, V)),
    "ordinary": lambda rng: 3 * rng.normal(size=(N, V)),
    "far from 0": lambda rng: rng.normal(size=(N, V)) + 5000 * rng.normal(size=(N, 1)),
    "one for all": lambda rng: 1e4 * np.eye(N, V, 13),
    "forbidden": lambda rng: np.where(np.arange(V) % 3, rng.normal(size=(N, V)), -np.inf),
}


def run(how, *arguments):
    if keras.backend.backend() == "jax":
        import jax

        return (log_normalizer if how == "eager" else jax.jit(log_normalizer))(*arguments)
    import tensorflow as tf

    if how == "eager":
        return log_normalizer(*arguments)
    return tf.function(log_normalizer, jit_compile=how == "xla")(*arguments)


@pytest.mark.parametrize("how", ["eager", "graph", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", LOGITS)
def test_it_is_the_sum_of_float64(kind, dtype, how):
    logits = LOGITS[kind](np.random.default_rng(3)).astype(dtype)
    tensor = ops.convert_to_tensor(logits)  # float32 on JAX, which has no other unless told to
    found = run(how, tensor, ops.array(logits.argmax(-1), "int32"))
    assert found.shape == (N,) and found.dtype == tensor.dtype
    precision = 1e-13 if keras.backend.standardize_dtype(tensor.dtype) == "float64" else 5e-7
    np.testing.assert_allclose(found, sums_of(logits), rtol=precision, atol=precision)
