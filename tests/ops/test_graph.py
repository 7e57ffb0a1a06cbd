"""Products by whichever routine is faster, and columns folded before they are reduced."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.ops import graph
from keras_drill.ops.graph import fold_columns, matrix_product, vector_product


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("rows", [7, 521])  # on either side of where routines change
@pytest.mark.parametrize("transposed", ["neither", "a", "b"])
def test_products_are_those_of_numpy(rows, transposed, dtype):
    rng = np.random.default_rng(rows)
    a = rng.integers(-3, 4, (rows, 11))
    b = rng.integers(-3, 4, {"neither": (11, 13), "a": (rows, 13), "b": (13, 11)}[transposed])
    expected = (a.T if transposed == "a" else a) @ (b.T if transposed == "b" else b)
    product = matrix_product(
        ops.cast(a, dtype), ops.cast(b, dtype), transposed == "a", transposed == "b"
    )
    assert keras.backend.standardize_dtype(product.dtype) == dtype
    exact = ops.convert_to_numpy(ops.cast(product, "float32"))
    tolerance = {"float32": 0, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
    np.testing.assert_allclose(exact, expected, rtol=tolerance)


def test_a_value_depends_on_sums_that_are_never_negative(monkeypatch):
    """XLA must not see that the value is always the same."""
    monkeypatch.setattr(graph, "_is_compiled_for_cpu", lambda: True)
    monkeypatch.setattr(graph, "device_kind", lambda: "cpu")
    x = ops.array([3.0, 5.0])
    for sums, expected in (([0.0, 7.0], [3, 5]), ([float("nan")], [3, 5]), ([2.0, -1.0], [0, 0])):
        np.testing.assert_array_equal(graph.with_data_dependency(x, ops.array(sums)), expected)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's compilers")
@pytest.mark.parametrize("columns", [5, 8, 29, 64])
def test_folding_columns_changes_no_reduction(columns):
    import tensorflow as tf

    x = np.random.default_rng(columns).integers(-9, 10, (3, columns)).astype("float32")
    widths = []

    @tf.function(jit_compile=True)
    def reduced(x):
        largest, total = fold_columns(ops.maximum, x), fold_columns(ops.add, x)
        widths.append(total.shape[1])
        return ops.max(largest, axis=-1), ops.sum(total, axis=-1)

    largest, total = reduced(x)
    np.testing.assert_array_equal(largest, x.max(-1))
    np.testing.assert_array_equal(total, x.sum(-1))
    only_cpus = all(device.device_type == "CPU" for device in tf.config.list_logical_devices())
    folded = only_cpus and columns >= 8
    assert widths == [columns // 8 + columns % 8 if folded else columns]


def test_nothing_is_folded_eagerly():
    x = ops.ones((3, 29))
    assert fold_columns(ops.add, x) is x


@pytest.mark.parametrize("compiled", [False, True])
def test_vector_products_are_those_of_numpy(compiled):
    rng = np.random.default_rng(0)
    a, b, x = (rng.integers(-3, 4, shape).astype("float32") for shape in (7, 11, (7, 11)))

    def products(a, b, x):
        return vector_product(a, x + 1), vector_product(x + 1, b)

    if compiled:
        products = jitted(products)
    by_rows, by_columns = products(a, b, x)
    np.testing.assert_array_equal(by_rows, a @ (x + 1))
    np.testing.assert_array_equal(by_columns, (x + 1) @ b)


def jitted(function):
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, jit_compile=True)
