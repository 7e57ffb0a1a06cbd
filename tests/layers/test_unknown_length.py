"""Sequences whose length is not known when the step is compiled."""

import keras
import numpy as np
import pytest

import keras_drill

tf = pytest.importorskip("tensorflow")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX knows all shapes")
@pytest.mark.parametrize("kind", [keras_drill.layers.LSTM, keras_drill.layers.GRU])
def test_gradients_are_those_of_a_known_length(kind):
    layer = kind(5, return_sequences=True)
    x = np.random.default_rng(0).normal(size=(3, 7, 2)).astype("float32")
    layer.build(x.shape)

    def gradients(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True) ** 2)
        return tape.gradient(loss, [variable.value for variable in layer.trainable_variables])

    compiled = tf.function(gradients, input_signature=[tf.TensorSpec([3, None, 2])])
    for got, expected in zip(compiled(x), gradients(x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
