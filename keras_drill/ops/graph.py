"""What the fused loss needs of TensorFlow's graphs, and other backends do by themselves."""

import keras
from keras import ops


def fuse(function):
    """Compiles an element-wise function of tensors into one pass over memory, where that pays.

    TensorFlow runs one operation after the other, and each reads and writes whole tensors. While
    it traces a graph, the function becomes a part of that graph that XLA compiles, once for every
    shape it meets; matrix products outside stay with TensorFlow, which is faster at them. Eagerly
    the function runs as it is, and JAX compiles everything anyway.

    Args:
        function: takes and returns nested tensors.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    if tf.executing_eagerly():
        return function
    return tf.function(function, jit_compile=True, autograph=False)


def after(x, earlier):
    """`x`, not to be had before the tensor `earlier` has been computed.

    TensorFlow starts whatever it has the inputs of; only this keeps it from holding the results of
    many independent steps at once. Where a compiler orders the steps, `x` comes back as it is.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    import tensorflow as tf

    with tf.control_dependencies([earlier]):
        return tf.identity(x)


def add_rows(total, start: int, rows):
    """The flat `total` of a matrix with `rows` added from row `start` on; in a graph, in place."""
    width = rows.shape[1]
    begin, end = start * width, (start + rows.shape[0]) * width
    rows = total[begin:end] + ops.reshape(rows, (-1,))
    if keras.backend.backend() != "tensorflow":
        return ops.slice_update(total, [begin], rows)
    import tensorflow as tf

    # `ops.slice_update` copies on TensorFlow, and this is three times slower on matrices.
    return tf.raw_ops.TensorStridedSliceUpdate(
        input=total, begin=[begin], end=[end], strides=[1], value=rows
    )
