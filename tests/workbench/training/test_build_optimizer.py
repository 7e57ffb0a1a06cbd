import keras
import numpy as np
import tensorflow as tf

import keras_drill
from keras_drill.workbench.training.build_optimizer import record_gradient_norm

V, D, B, T = 11, 5, 3, 7


def test_the_recorded_norm_is_that_of_the_gradient_though_words_repeat():
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras.layers.GRU(D, return_sequences=True)(keras.layers.Embedding(V, D)(tokens))
    model = keras_drill.LanguageModel(keras.Model(tokens, hidden), keras_drill.OutputLayer(V))
    rng = np.random.default_rng(1)
    inputs, targets = rng.integers(0, V, (2, B, T))
    with tf.GradientTape() as tape:
        loss = model.compute_loss(inputs, targets)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    expected = np.sqrt(sum(np.sum(np.square(tf.convert_to_tensor(g))) for g in gradients))
    norm = keras.metrics.Mean()
    model.compile(record_gradient_norm(keras.optimizers.SGD(0.1, global_clipnorm=0.01), norm))
    model.train_on_batch(inputs, targets)
    np.testing.assert_allclose(norm.result(), expected, rtol=1e-5)
