import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.ops.top_k import top_k


@pytest.mark.parametrize("k", [1, 2, 5, 13])
@pytest.mark.parametrize("n", [7, 1024, 3989, 8000])  # short, with divisors, a prime, with divisors
def test_it_is_what_a_stable_sort_gives(n, k):
    k = min(k, n)
    rng = np.random.default_rng(n + k)
    rows = rng.normal(size=(2, 3, n)).astype("float32")
    rows[0, 1] = np.round(rows[0, 1])  # many equal entries
    rows[0, 2] = -np.inf
    rows[0, 2, rng.integers(n, size=k // 2 + 1)] = 0.5  # fewer than k others, in any order
    rows[1, 0] = -np.sort(-rows[1, 0])  # all in the first blocks
    rows[1, 1] = np.sort(rows[1, 1])  # all in the last
    rows[1, 2] = 1.0
    values, indices = (np.asarray(x) for x in top_k(ops.array(rows), k))
    expected = np.argsort(-rows, axis=-1, kind="stable")[..., :k]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(rows, expected, -1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    rows = ops.cast(np.random.default_rng(2).normal(size=(5, 3989)), dtype)
    values, indices = top_k(rows, 3)
    expected, places = ops.top_k(rows, 3)
    assert keras.backend.standardize_dtype(values.dtype) == dtype
    np.testing.assert_array_equal(ops.cast(values, "float32"), ops.cast(expected, "float32"))
    np.testing.assert_array_equal(indices, places)


@pytest.mark.parametrize("n", [7, 3989])
def test_compiled_by_xla_zeros_of_either_sign_are_equal(n):
    rows = np.where(np.arange(2 * n).reshape(2, n) % 3, -0.0, 0.0).astype("float32")
    if keras.backend.backend() == "jax":
        import jax

        compiled = jax.jit(lambda x: top_k(x, 5))
    else:
        import tensorflow as tf

        compiled = tf.function(lambda x: top_k(x, 5), jit_compile=True)
    values, indices = compiled(ops.array(rows))
    np.testing.assert_array_equal(values, np.zeros((2, 5)))
    np.testing.assert_array_equal(indices, [np.arange(5)] * 2)
