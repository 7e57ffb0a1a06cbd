"""Accumulates a large matrix in place."""

import keras
from keras import ops

from keras_drill.ops.private_interfaces import (
    add_rows_in_place,
    is_compiled_by_xla,
    zeros_of_its_own,
)


class MatrixSum:
    """Adds blocks of rows, and single rows, to a running sum `[num_rows, width]`.

    The sum is a tensor in an internal layout, which the methods take and return; `matrix` returns
    its value. TensorFlow would copy the sum at each addition, or read the block six times. This
    class changes the memory in place, in chunks of whole rows, and reads a block once. Therefore do
    not use a sum again after passing it to `add_block` or `add_rows`. Operations that read the old
    sum must end before the addition begins. XLA and JAX ensure this order by themselves.

    Args:
        num_rows: Rows of the matrix.
        width: Columns of the matrix.
        dtype: Dtype of the sum.

    Attributes:
        rows_per_chunk: Blocks must start at multiples of this number.
    """

    rows_per_chunk = 256

    def __init__(self, num_rows: int, width: int, dtype: str):
        self.num_rows = num_rows
        self.width = width
        self.dtype = dtype
        self.in_place = keras.backend.backend() == "tensorflow" and not is_compiled_by_xla()

    def zeros(self):
        """Returns the initial sum, zeros."""
        if not self.in_place:
            return ops.zeros((self.num_rows, self.width), self.dtype)
        chunks = -(-self.num_rows // self.rows_per_chunk)
        return zeros_of_its_own([chunks, self.rows_per_chunk * self.width], self.dtype)

    def add_block(self, total, start: int, rows):
        """Adds `rows` `[B, width]` from row `start` on, a multiple of `rows_per_chunk`."""
        size = rows.shape[0]
        if not self.in_place:
            return ops.slice_update(total, (start, 0), total[start : start + size] + rows)
        first = start // self.rows_per_chunk
        whole, rest = divmod(size, self.rows_per_chunk)
        if whole:
            block = rows[: size - rest] if rest else rows
            total = self._add(total, ops.arange(first, first + whole), block)
        if rest:
            block = ops.pad(rows[size - rest :], [(0, self.rows_per_chunk - rest), (0, 0)])
            total = self._add(total, [first + whole], block)
        return total

    def add_rows(self, total, indices, rows):
        """Adds `rows` `[R, width]` to the rows `indices` `[R]`, which may repeat."""
        if self.in_place:
            chunked = total
            total = self._add(ops.reshape(total, (-1, self.width)), indices, rows)
            return ops.reshape(total, chunked.shape)
        if keras.backend.backend() != "tensorflow":
            return total.at[indices].add(rows)
        import tensorflow as tf

        return tf.tensor_scatter_nd_add(total, indices[:, None], rows)

    def matrix(self, total):
        """Returns the value of the sum, `[num_rows, width]`."""
        return ops.reshape(total, (-1, self.width))[: self.num_rows]

    def _add(self, total, indices, rows):
        return add_rows_in_place(total, indices, ops.reshape(rows, (-1, total.shape[1])))
