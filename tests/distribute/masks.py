"""Prints which entries each random layer of the package dropped on each replica of this process, as
JSON: `python -m ... STRATEGY [DEVICES]`.

Logical devices must be made before TensorFlow starts, so it needs a process of its own.
"""

import functools
import hashlib
import json
import sys

import numpy as np
import tensorflow as tf
from keras import ops

import keras_drill
from keras_drill import layers
from keras_drill.distribute import strategy
from keras_drill.ops.private_interfaces import attention_dropout

V, D, B, T = 61, 67, 2, 3


def random_layers():
    """By name, a layer and a function that draws with it."""
    network = functools.partial(
        keras_drill.label_encoders.ResidualNetwork,
        residual_to_input=False,
        activation=None,
        dropout=0.5,
        seed=1,
    )
    lstm = layers.LSTM(D, weight_dropout=0.5, seed=1)
    lstm.build((B, T, D))
    transformer = layers.TransformerLayer(1, 5, attention_dropout=0.5, seed=1)
    transformer.build((B, T, D))
    described = keras_drill.DescriptionLabelEncoder(np.ones((V, D)), embedding_dropout=0.5, seed=1)
    words = np.arange(V)[None]
    return {
        "Dropout": (layers.Dropout(0.5, seed=1), lambda one: one(ops.ones((V, D)), training=True)),
        "VariationalDropout": (
            layers.VariationalDropout(0.5, seed=1),
            lambda one: one(ops.ones((B, T, D)), training=True),
        ),
        "EmbeddingDropout": (
            layers.EmbeddingDropout(0.5, V, seed=1),
            lambda one: one(ops.ones((1, V, D)), words, training=True),
        ),
        "LSTM": (lstm, lambda one: one.read_weights(True).recurrent_kernel),
        "TransformerLayer": (
            transformer,
            lambda one: attention_dropout(one.self_attention)(ops.ones((V, D)), training=True),
        ),
        "ResidualNetwork": (network(), lambda one: one._drop(ops.ones((V, D)), None, True)[0]),
        "ResidualNetwork, variational": (
            network(variational_dropout=True),
            lambda one: one._drop(None, ops.ones((D, 1)), True)[1],
        ),
        "DescriptionLabelEncoder": (described, lambda one: one._kept(True)),
    }


def fingerprint(values) -> str:
    return hashlib.md5((np.asarray(values) != 0).tobytes()).hexdigest()


def main(name: str, devices: str = "1") -> None:
    if name == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * int(devices),
        )
        replicas = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(int(devices))])
    else:
        replicas = strategy(name)
    found = {}
    # XLA compiles for one of several logical CPUs what belongs to another.
    for mode in ("eager", "graph") if devices == "2" else ("eager", "graph", "xla"):
        with replicas.scope():
            made = random_layers()
        for key, (layer, draw) in made.items():
            draw = functools.partial(draw, layer)
            if mode != "eager":
                draw = tf.function(draw, jit_compile=mode == "xla")
            run = functools.partial(replicas.run, draw)
            for number in range(2):  # draws
                values = (run if mode == "eager" else tf.function(run))()
                local = replicas.experimental_local_results(values)
                found[f"{key}, {mode}, draw {number}"] = list(map(fingerprint, local))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
