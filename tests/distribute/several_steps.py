"""Prints the errors of replicas that are asked for what they cannot do, one a line."""

import functools
import sys

import keras
import tensorflow as tf

import keras_drill
from keras_drill.distribute import strategy


def make(scheme, steps, optimizer="adam", jit_compile=False):
    keras.utils.set_random_seed(1)
    with scheme.scope():
        embedding = keras.layers.Embedding(5, 3)
        model = keras_drill.LanguageModel(embedding, keras_drill.TiedOutput(5, embedding))
        model.compile(optimizer, steps_per_execution=steps, jit_compile=jit_compile)
    return model


def step_of_an_optimizer_that_is_not_built(scheme):
    model = make(scheme, 1)
    model.build((None, None))
    weights = model.trainable_variables
    scheme.run(lambda: model.optimizer.apply([tf.zeros(w.shape) for w in weights], weights))


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
    accumulating.append(keras.optimizers.Adam(use_ema=True))
    calls = [functools.partial(make, scheme, 1, optimizer) for optimizer in accumulating]
    calls.append(lambda: make(scheme, 2).make_train_function())
    calls.append(lambda: step_of_an_optimizer_that_is_not_built(scheme))
    if name == "mirrored":
        calls.append(lambda: make(scheme, 1, jit_compile=True))
        tokens = tf.zeros((4, 3), "int32")
        make(scheme, 1, jit_compile="auto").fit(tokens, tokens, verbose=0)
    for call in calls:
        try:
            call()
        except ValueError as error:
            print(error)
        else:
            print("was not refused")


if __name__ == "__main__":
    main(sys.argv[1])
