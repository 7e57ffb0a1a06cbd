"""The running sum of matrices, in every way it may be run."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_drill.fused_loss.matrix_accumulator import MatrixSum

ROWS, WIDTH, CHUNK = 37, 13, 4
STARTS = (0, 16, 32)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(MatrixSum, "rows_per_chunk", CHUNK)


def run(function, how):
    if how == "eager" or keras.backend.backend() != "tensorflow":
        return function()
    import tensorflow as tf

    return tf.function(function, jit_compile=how == "xla")()


@pytest.mark.parametrize("how", ["eager", "graph", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adds_up_blocks_and_repeated_rows_in_a_loop(how, dtype):
    rng = np.random.default_rng(0)
    matrix, rows = rng.normal(size=(ROWS, WIDTH)), rng.normal(size=(5, WIDTH))
    indices = np.array([3, 36, 3, 0, 17])
    expected = 3 * matrix
    np.add.at(expected, np.tile(indices, 3), np.tile(rows, (3, 1)))

    def added_up():
        summed = MatrixSum(ROWS, WIDTH, dtype)

        def body(i, total):
            for start in STARTS:
                block = ops.convert_to_tensor(matrix[start : start + 16], dtype)
                total = summed.add_block(total, start, block)
            total = summed.add_rows(
                total, ops.convert_to_tensor(indices), ops.convert_to_tensor(rows, dtype)
            )
            return i + 1, total

        _, total = ops.while_loop(lambda i, _: i < 3, body, (0, summed.zeros()))
        return summed.matrix(total)

    for _ in range(2):  # nothing is left of the first time
        actual = run(added_up, how)
        assert actual.dtype == ops.zeros((), dtype).dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["eager", "graph", "xla"])
def test_two_sums_of_one_size_do_not_share_memory(how):
    shape = (613, 211)  # of smaller ones graphs keep a constant each

    def two():
        summed = MatrixSum(*shape, "float32")

        def thrice(block):
            def body(i, total):
                return i + 1, summed.add_block(total, 0, block)

            return summed.matrix(ops.while_loop(lambda i, _: i < 3, body, (0, summed.zeros()))[1])

        return thrice(ops.ones(shape)), thrice(2 * ops.ones(shape))

    for _ in range(2):
        first, second = run(two, how)
        np.testing.assert_array_equal(first, np.full(shape, 3.0))
        np.testing.assert_array_equal(second, np.full(shape, 6.0))
