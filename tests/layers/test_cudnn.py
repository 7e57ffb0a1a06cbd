"""What can be checked of the cuDNN path without a GPU: that its graph and derivative are built."""

import keras
import numpy as np
import pytest

from keras_drill.layers.cudnn import cudnn_gru, cudnn_lstm, has_cudnn

B, D, H = 3, 5, 11

backend = keras.backend.backend()
on_tensorflow = pytest.mark.skipif(backend != "tensorflow", reason="TensorFlow only")
on_jax = pytest.mark.skipif(backend != "jax", reason="JAX only")


@on_tensorflow
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


@on_tensorflow
def test_is_not_used_without_a_gpu():
    import tensorflow as tf

    assert has_cudnn() == bool(tf.config.list_logical_devices("GPU"))


@on_jax
def test_jax_gets_the_weights_in_the_order_of_cudnn(monkeypatch):
    """By the reference implementation that JAX has of cuDNN's LSTM."""
    import jax
    from jax.experimental import rnn

    from keras_drill.layers import LSTM

    def reference(x, h, c, weights, lengths, width, units, *options):
        sizes = (width, units, 1, False)
        assert weights.shape == (rnn.get_num_params_in_lstm(*sizes),)
        unpacked = rnn.unpack_lstm_weights(weights, *sizes)
        assert options == (1, 0.0, False, None)
        return rnn.lstm_ref(x, h, c, *unpacked, lengths, width, units, 1, 0.0, False)

    monkeypatch.setattr(rnn, "lstm", reference)
    layer = LSTM(
        H, return_sequences=True, return_state=True, bias_initializer="normal", weight_dropout=0.5
    )
    x = np.random.default_rng(0).normal(size=(B, 7, D)).astype("float32")
    layer.build(x.shape)
    seeds = [x.value for x in layer.non_trainable_variables]

    def run(weights, x):
        variables = [*layer.trainable_variables, *layer.non_trainable_variables]
        with keras.StatelessScope(list(zip(variables, [*weights, *seeds], strict=True))):
            outputs, h, c = layer(x, training=True)
        return (outputs**2).sum() + h.sum() + (c**2).sum(), (outputs, h, c)

    def results():
        weights = [v.value for v in layer.trainable_variables]
        return jax.value_and_grad(run, argnums=(0, 1), has_aux=True)(weights, x)

    expected = results()
    layer.uses_cudnn = True
    actual = results()
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * float(np.abs(b).max()))
