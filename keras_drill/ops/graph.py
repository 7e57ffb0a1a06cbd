"""Operations of the fused loss that control how TensorFlow and XLA order and fuse operations."""

import functools

import keras
from keras import ops

from keras_drill.ops.device_kind import device_kind, is_accelerator
from keras_drill.ops.private_interfaces import is_compiled_by_xla, put_rows_in_place

FOLDS = 8  # more than 8 are slower than no folding


def fuse(function):
    """Returns an element-wise function that XLA compiles into one pass over memory in a graph.

    Without XLA, TensorFlow runs one operation after the other, and each reads and writes whole
    tensors. XLA compiles the function once for every input shape. Matrix products outside of the
    function stay with TensorFlow, which computes them faster. In eager mode and on JAX, which
    compiles everything, the function is returned unchanged.

    Args:
        function: The element-wise function. It takes and returns nested tensors.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    if tf.executing_eagerly():
        return function
    return tf.function(function, jit_compile=True, autograph=False)


def with_dependencies(x, *earlier):
    """Returns `x`, which becomes available only after the tensors `earlier` are computed.

    TensorFlow starts every operation whose inputs are available. Without this order, the results
    of many independent steps would be in memory at the same time. On JAX, whose compiler orders
    the steps, `x` is returned unchanged.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    import tensorflow as tf

    with tf.control_dependencies(earlier):
        return tf.identity(x)


def with_data_dependency(x, sums):
    """Returns `x`, which XLA on CPUs uses only after it has computed `sums`.

    On CPUs, XLA computes an operation as soon as its inputs are available, and keeps the result in
    memory. The returned value depends on the sign of `sums`, so operations on the value come
    later. XLA cannot know that sums of exponentials are never negative.

    Args:
        x: A tensor.
        sums: A tensor without negative entries; it may be NaN.
    """
    if keras.backend.backend() == "jax":
        is_for_cpu = device_kind() == "cpu"
    else:
        is_for_cpu = _is_compiled_for_cpu()
    return ops.where(ops.any(sums < 0), ops.zeros_like(x), x) if is_for_cpu else x


def fold_columns(combine, x):
    """Reduces the number of columns of a matrix to about an eighth, before a reduction over them.

    On CPUs, XLA leaves reductions to a library and stores their whole input in memory. A folded
    input needs an eighth of the memory. In all other cases the matrix is returned unchanged.

    Args:
        combine: `ops.maximum` or `ops.add`, the operation of the reduction that follows.
        x: `[R, B]`, with static B.

    Returns:
        `[R, B // 8 + B % 8]`, whose reduction by `combine` over the columns equals that of `x`; or
        `x` itself.
    """
    size = x.shape[1] // FOLDS
    if size == 0 or not _is_compiled_for_cpu():
        return x
    folds = ops.split(x[:, : FOLDS * size], FOLDS, axis=1)
    return ops.concatenate([functools.reduce(combine, folds), x[:, FOLDS * size :]], axis=1)


def computes_anew() -> bool:
    """Returns whether `anew` has an effect: only on JAX with a GPU or TPU."""
    return keras.backend.backend() == "jax" and is_accelerator()


def anew(x, *earlier):
    """Returns `x`, which JAX recomputes on accelerators, after the tensors `earlier`.

    Without this function, XLA stores an element-wise result that several reductions read, in
    float32. Recomputing the result avoids these matrices, in about the same time. With KerBS, peak
    memory falls from 4.8 to 1.8 GiB (8,192 tokens, 32,768 words, width 1,024).
    """
    if not computes_anew():
        return x
    import jax

    return jax.lax.optimization_barrier((x, *earlier))[0]


def vector_product(a, b):
    """Returns the product of a vector and a matrix, or of a matrix and a vector.

    On CPUs, XLA computes such a product entry by entry, together with the matrix. XLA leaves a
    product of two matrices to a library, which takes a tenth to a half of the time. On CPUs the
    function therefore makes a matrix of two equal vectors.

    On accelerators, XLA leaves all products to a library, which reads the matrix from memory. A sum
    can be computed together with the matrix, so the function uses a sum there.
    """
    if is_accelerator() and (keras.backend.backend() == "jax" or is_compiled_by_xla()):
        return ops.sum(a[:, None] * b, axis=0) if len(a.shape) == 1 else ops.sum(a * b, axis=1)
    if not _is_compiled_for_cpu():
        return ops.matmul(a, b)
    if len(a.shape) == 1:
        return ops.matmul(ops.stack([a, a]), b)[0]
    return ops.matmul(a, ops.stack([b, b], axis=1))[:, 0]


def _is_compiled_for_cpu() -> bool:
    """Returns whether TensorFlow traces for XLA, and all devices are CPUs."""
    if keras.backend.backend() != "tensorflow" or not is_compiled_by_xla():
        return False
    return device_kind() == "cpu"


def matrix_product(
    a, b, transpose_a: bool = False, transpose_b: bool = False, dtype: str | None = None
):
    """Returns the product of two matrices.

    Args:
        a, b: The matrices, of one dtype.
        transpose_a, transpose_b: Whether to transpose the matrix first.
        dtype: Dtype of the result; `None` is the matrices' dtype. On JAX, accelerators compute
            the sums in float32 and round once, to this dtype.
    """
    if keras.backend.backend() != "tensorflow":
        return _jax_product(a, b, transpose_a, transpose_b, dtype)
    product = _tensorflow_product(a, b, transpose_a, transpose_b)
    return product if dtype is None else ops.cast(product, dtype)


def _jax_product(a, b, transpose_a, transpose_b, dtype):
    a = ops.transpose(a) if transpose_a else a
    b = ops.transpose(b) if transpose_b else b
    if dtype is None or not is_accelerator():
        product = ops.matmul(a, b)
        return product if dtype is None else ops.cast(product, dtype)
    import jax

    return jax.lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=dtype)


def _tensorflow_product(a, b, transpose_a, transpose_b):
    import tensorflow as tf

    # `tf.einsum` uses another oneDNN routine: measured on CPUs with many labels, up to a fifth
    # faster for these products and slower for others. For float16 it would sum in float16.
    is_thin = a.shape[0] is None or a.shape[0] < 512
    if a.dtype != tf.float16:
        if transpose_b and not transpose_a and is_thin:
            return tf.einsum("ik,jk->ij", a, b)
        if transpose_a and not transpose_b and not is_thin:
            return tf.einsum("ki,kj->ij", a, b)
    return tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def put_rows(x, start, rows):
    """Returns `x` with `rows` in place of its rows from `start` on, an integer or scalar tensor."""
    if keras.backend.backend() != "tensorflow" or is_compiled_by_xla():
        return ops.slice_update(x, [start] + [0] * (len(x.shape) - 1), rows)
    return put_rows_in_place(x, start, rows)  # `ops.slice_update` copies
