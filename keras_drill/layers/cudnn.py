"""cuDNN's LSTM and GRU on the TensorFlow backend. All sequences are time-major."""

import contextlib
from collections.abc import Iterator

import keras
from keras import ops

from keras_drill.ops.private_interfaces import all_layers, run_cudnn


def has_cudnn() -> bool:
    """Returns whether recurrent layers can use cuDNN.

    This requires the TensorFlow backend, a TensorFlow that is built with CUDA, and a GPU.
    """
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return tf.test.is_built_with_cuda() and bool(tf.config.list_logical_devices("GPU"))


@contextlib.contextmanager
def portable_kernels(layer: keras.Layer) -> Iterator[None]:
    """Switches cuDNN off in recurrent layers inside the `with` block.

    Use this function to trace a graph for export: a graph with cuDNN's kernels does not run on a
    server without a GPU.

    Args:
        layer: A layer or model. Recurrent layers of this package and of Keras are changed, also
            those inside other layers.
    """
    settings = [
        (inner, name, getattr(inner, name))
        for inner in all_layers(layer)
        for name in ("uses_cudnn", "use_cudnn")  # this package's, Keras'
        if getattr(inner, name, False)
    ]
    try:
        for inner, name, _ in settings:
            setattr(inner, name, False)
        yield
    finally:
        for inner, name, value in settings:
            setattr(inner, name, value)


def cudnn_lstm(x, kernel, recurrent_kernel, bias, h0, c0):
    """Runs `lstm_sequence` on cuDNN, without a mask. The state has the dtype of `x` meanwhile."""
    weights = ops.split(kernel, 4, axis=1) + ops.split(recurrent_kernel, 4, axis=1)
    biases = [ops.zeros_like(bias), bias]  # cuDNN adds one bias to x W and another to h U
    outputs, h, c = _run("lstm", x, weights, biases, h0, c0)
    return outputs, (h, c)


def cudnn_gru(x, kernel, recurrent_kernel, bias, h0):
    """Runs `gru_sequence` on cuDNN, without a mask. The state has the dtype of `x` meanwhile."""

    def reset_gate_first(array, axis):  # the order of gates is r, z, n in cuDNN, z, r, n in Keras
        z, r, n = ops.split(array, 3, axis=axis)
        return [r, z, n]

    weights = reset_gate_first(kernel, 1) + reset_gate_first(recurrent_kernel, 1)
    biases = reset_gate_first(bias[0], 0) + reset_gate_first(bias[1], 0)
    outputs, h, _ = _run("gru", x, weights, biases, h0)
    return outputs, (h,)


def _run(mode, x, weights, biases, h0, c0=None):
    columns = [ops.reshape(ops.transpose(w), (-1,)) for w in weights]
    outputs, h, c = run_cudnn(
        mode,
        x,
        ops.concatenate(columns + biases, axis=0),
        ops.cast(h0, x.dtype)[None],
        ops.zeros((), x.dtype) if c0 is None else ops.cast(c0, x.dtype)[None],
    )
    c = None if c0 is None else ops.cast(c[0], h0.dtype)
    return ops.cast(outputs, h0.dtype), ops.cast(h[0], h0.dtype), c
