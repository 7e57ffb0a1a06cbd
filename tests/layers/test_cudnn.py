"""What can be checked of the cuDNN path without a GPU: that its graph and derivative are built."""

import keras
import pytest

from keras_drill.layers.cudnn import cudnn_gru, cudnn_lstm, has_cudnn

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow only")

B, D, H = 3, 5, 11


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "sequence, gates, bias_shape, num_states",
    [(cudnn_lstm, 4, (4 * H,), 2), (cudnn_gru, 3, (2, 3 * H), 1)],
)
def test_graph(sequence, gates, bias_shape, num_states, dtype):
    import tensorflow as tf

    shapes = [(None, B, D), (D, gates * H), (H, gates * H), bias_shape]
    specs = [tf.TensorSpec(shape, dtype) for shape in shapes]
    specs += [tf.TensorSpec((B, H), "float32")] * num_states

    @tf.function(input_signature=specs)
    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            outputs, state = sequence(*tensors)
            loss = tf.reduce_sum(outputs)
        return outputs, state, tape.gradient(loss, tensors)

    outputs, state, gradients = run.get_concrete_function().structured_outputs
    assert outputs.shape.as_list() == [None, B, H]
    assert outputs.dtype == "float32"
    assert [s.shape.as_list() for s in state] == [[B, H]] * num_states
    assert [g.shape.as_list() for g in gradients] == [list(s.shape) for s in specs]


def test_is_not_used_without_a_gpu():
    import tensorflow as tf

    assert has_cudnn() == bool(tf.config.list_logical_devices("GPU"))
