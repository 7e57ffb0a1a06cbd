"""Trains a regularised model on one or two replicas: `python -m ... 2 FILE` writes what came of it.

Logical devices must be made before TensorFlow starts, so every number of replicas needs a process
of its own.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_drill

V, D, B, T = 13, 5, 4, 7


def train(replicas: int) -> dict[str, np.ndarray]:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
    keras.utils.set_random_seed(1)
    with strategy.scope():
        backbone = keras_drill.models.AWDLSTM(
            V, D, 7, 1, dropout=0.0, hidden_dropout=0.0, input_dropout=0.0, embedding_dropout=0.0,
            weight_dropout=0.0, stateful=True, batch_size=B // replicas,
        )  # fmt: skip
        backbone.recurrent_layers[0].kernel_regularizer = keras.regularizers.L2(0.1)
        head = keras_drill.OutputLayer(V, embedding=backbone.embedding)
        model = keras_drill.LanguageModel(backbone, head, label_smoothing=0.1)
        metrics = [keras_drill.metrics.Perplexity()]
        model.compile(keras.optimizers.SGD(0.5), metrics=metrics, jit_compile=False)
        model.build((B // replicas, T))
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, V, (3 * B, T + 1)).astype("int32")
    weights = rng.random((3 * B, T)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((tokens[:, :-1], tokens[:, 1:], weights))
    dataset = dataset.batch(B, drop_remainder=True)
    history = model.fit(
        dataset, epochs=2, validation_data=dataset.take(2), verbose=0,
        callbacks=[keras_drill.callbacks.ResetState()],
    ).history  # fmt: skip
    arrays = {f"weights_{i}": v.numpy() for i, v in enumerate(model.trainable_variables)}
    return {**arrays, **{name: np.array(values) for name, values in history.items()}}


if __name__ == "__main__":
    np.savez(sys.argv[2], **train(int(sys.argv[1])))
