"""Trains an encoder–decoder on one or two replicas: `python -m ... 2 FILE` writes what came of it.

Logical devices must be made before TensorFlow starts, so every number of replicas needs a process
of its own.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_drill
from keras_drill.layers import Attention

V, D, B, S, T = 13, 6, 4, 5, 7


def train(replicas: int) -> dict[str, np.ndarray]:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
    keras.utils.set_random_seed(1)
    with strategy.scope():
        senses = keras_drill.SenseEmbedding(V, D, num_senses=29)
        backbone = keras_drill.models.RecurrentEncoderDecoder(
            V, D, 7, attention=Attention(), input_feeding=True, embedding=senses, seed=1
        )
        model = keras_drill.SequenceToSequence(
            backbone,
            keras_drill.KernelizedBayesianSoftmax(V, senses),
            reduction="sum",
            scheduled_sampling=keras_drill.ScheduledSampling(1.0, argmax=True),
        )
        metrics = [keras_drill.metrics.Perplexity(), "accuracy"]
        model.compile(keras.optimizers.SGD(0.02), metrics=metrics, jit_compile=False)
    rng = np.random.default_rng(2)
    source, labels = rng.integers(3, V, (3 * B, S)), rng.integers(3, V, (3 * B, T))
    labels[::3, 4:] = 0
    target = np.where(labels == 0, 0, np.roll(labels, 1, axis=1))
    target[:, 0] = 1
    dataset = tf.data.Dataset.from_tensor_slices(({"source": source, "target": target}, labels))
    dataset = dataset.batch(B)
    history = model.fit(dataset, epochs=2, validation_data=dataset, verbose=0).history
    arrays = {f"weights_{i}": v.numpy() for i, v in enumerate(model.trainable_variables)}
    steps = keras.ops.convert_to_numpy(model.scheduled_sampling.step)
    return {**arrays, **{name: np.array(v) for name, v in history.items()}, "steps": steps}


if __name__ == "__main__":
    np.savez(sys.argv[2], **train(int(sys.argv[1])))
