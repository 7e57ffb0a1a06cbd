"""Trains students of two kinds of teachers on one or two replicas: `python -m ... 2 FILE` writes
what came of it.

Logical devices must be made before TensorFlow starts, so every number of replicas needs a process
of its own.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_drill
from tests.models.train_new_heads_on_replicas import V, fit, trained_model, untied_model


def train(replicas: int) -> dict[str, np.ndarray]:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
    arrays = {}
    with strategy.scope():
        for divergence in ("forward_kl", "jensen_shannon"):
            teacher = untied_model()
            if divergence == "jensen_shannon":
                keras.utils.set_random_seed(2)
                teacher = keras_drill.LanguageModel(
                    teacher.backbone, keras_drill.KernelizedBayesianSoftmax(V, num_senses=2 * V)
                )
            teacher.trainable = False
            distiller = keras_drill.Distiller(teacher, trained_model(), divergence)
            arrays |= {f"{divergence}/{key}": value for key, value in fit(distiller).items()}
    return arrays | {
        name: arrays[f"forward_kl/{name}"] for name in ("loss", "val_loss", "val_perplexity")
    }


if __name__ == "__main__":
    np.savez(sys.argv[2], **train(int(sys.argv[1])))
