"""Prints the errors of replicas that are asked to accumulate gradients, and for several steps."""

import sys

import keras
import tensorflow as tf

import keras_drill
from keras_drill.distribute import strategy


def make(scheme, steps, optimizer="adam"):
    keras.utils.set_random_seed(1)
    with scheme.scope():
        embedding = keras.layers.Embedding(5, 3)
        model = keras_drill.LanguageModel(embedding, keras_drill.TiedOutput(5, embedding))
        model.compile(optimizer, steps_per_execution=steps, jit_compile=False)
    return model


def main(name):
    if name == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
        )
    scheme = strategy(name)
    assert scheme.num_replicas_in_sync == 2
    accumulating = [keras.optimizers.SGD(gradient_accumulation_steps=2)]
    if hasattr(keras.optimizers, "MultiOptimizer"):
        known = keras.optimizers.OptimizerMap(keras.optimizers.SGD(gradient_accumulation_steps=2))
        accumulating.append(keras.optimizers.MultiOptimizer(known))
    for optimizer in accumulating:
        try:
            make(scheme, 1, optimizer)
        except ValueError as error:
            print(error)
        else:
            print("was not refused")
    try:
        make(scheme, 2).make_train_function()
    except ValueError as error:
        print(error)


if __name__ == "__main__":
    main(sys.argv[1])
