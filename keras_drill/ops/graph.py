"""What the fused loss needs of TensorFlow's graphs, and other backends do by themselves."""

import functools

import keras
from keras import ops

from keras_drill.ops.device_kind import device_kind, is_accelerator
from keras_drill.ops.private_interfaces import is_compiled_by_xla, put_rows_in_place

FOLDS = 8  # more than 8 columns at once are slower than none folded


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


def with_dependencies(x, *earlier):
    """Returns `x`, which becomes available only after the tensors `earlier` are computed.

    TensorFlow starts every operation whose inputs are available. Without this order, the results
    of many independent steps would be in memory at the same time. Backends whose compiler orders
    the steps get `x` unchanged.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    import tensorflow as tf

    with tf.control_dependencies(earlier):
        return tf.identity(x)


def with_data_dependency(x, sums):
    """Returns `x`, which compilers for CPUs compute only after `sums`.

    XLA computes an operation there as soon as its inputs are available, and holds the result in
    memory. The returned value depends on the sign of `sums`: XLA cannot know that sums of
    exponentials are never negative.

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
    """`[R, B]`, soon to be reduced over B by `combine`, as `[R, B / 8]` or a little wider.

    On CPUs XLA leaves reductions to a library, and writes down all that they read. Folded first,
    that is an eighth. Elsewhere a reduction computes what it reads, so nothing is folded.

    Args:
        combine: `ops.maximum` or `ops.add`.
        x: The matrix. B is static.
    """
    size = x.shape[1] // FOLDS
    if size == 0 or not _is_compiled_for_cpu():
        return x
    folds = ops.split(x[:, : FOLDS * size], FOLDS, axis=1)
    return ops.concatenate([functools.reduce(combine, folds), x[:, FOLDS * size :]], axis=1)


def computes_anew() -> bool:
    """Whether `anew` does anything."""
    return keras.backend.backend() == "jax" and is_accelerator()


def anew(x, *earlier):
    """Returns `x`, which JAX computes again on accelerators, after the tensors `earlier`.

    XLA stores an element-wise result that several reductions read, in float32. Computing the
    result again avoids these matrices: KerBS needs 1.8 GiB instead of 4.8 at 8,192 tokens, 32,768
    words and width 1,024, in about the same time on H100 and H200.
    """
    if not computes_anew():
        return x
    import jax

    return jax.lax.optimization_barrier((x, *earlier))[0]


def vector_product(a, b):
    """The product of a vector and a matrix, or of a matrix and a vector.

    For CPUs XLA computes these while it computes the matrix: entry by entry, and down its columns.
    A product of two matrices it leaves to a library, at a tenth to a half of the time. For
    accelerators it leaves all products to a library, but computes a sum along with the matrix.
    """
    if is_accelerator() and (keras.backend.backend() == "jax" or is_compiled_by_xla()):
        return ops.sum(a[:, None] * b, axis=0) if len(a.shape) == 1 else ops.sum(a * b, axis=1)
    if not _is_compiled_for_cpu():
        return ops.matmul(a, b)
    if len(a.shape) == 1:
        return ops.matmul(ops.stack([a, a]), b)[0]
    return ops.matmul(a, ops.stack([b, b], axis=1))[:, 0]


def _is_compiled_for_cpu() -> bool:
    """Whether TensorFlow traces for XLA, and no device is other than a CPU."""
    if keras.backend.backend() != "tensorflow" or not is_compiled_by_xla():
        return False
    return device_kind() == "cpu"


def matrix_product(
    a, b, transpose_a: bool = False, transpose_b: bool = False, dtype: str | None = None
):
    """The product of two matrices, each transposed first if so asked.

    Args:
        a, b: The matrices, of one dtype.
        transpose_a, transpose_b: Whether to transpose them.
        dtype: Dtype of the result; `None` for that of the matrices. Accelerators round only
            there: their matrix units add up in float32.
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

    # `tf.einsum` takes another routine of oneDNN, up to a fifth faster at these products and slower
    # at the others: measured on CPUs for many labels. In float16 it would add up in float16.
    is_thin = a.shape[0] is None or a.shape[0] < 512
    if a.dtype != tf.float16:
        if transpose_b and not transpose_a and is_thin:
            return tf.einsum("ik,jk->ij", a, b)
        if transpose_a and not transpose_b and not is_thin:
            return tf.einsum("ki,kj->ij", a, b)
    return tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def put_rows(x, start, rows):
    """`x` with `rows` in place of its own from row `start` on, a number or a scalar tensor."""
    if keras.backend.backend() != "tensorflow" or is_compiled_by_xla():
        return ops.slice_update(x, [start] + [0] * (len(x.shape) - 1), rows)
    return put_rows_in_place(x, start, rows)  # `ops.slice_update` copies
