"""Puts heads on a trained model, freezes its own, and adds a word, on one or two replicas, and
trains each on: `python -m ... 2 FILE` writes what came of it.

Logical devices must be made before TensorFlow starts, so every number of replicas needs a process
of its own.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_drill

V, D, B, T = 13, 5, 4, 7
FEATURES = np.random.default_rng(1).normal(size=(V, 3))


def dataset():
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, V, (3 * B, T + 1)).astype("int32")
    weights = rng.random((3 * B, T)).astype("float32")
    rows = tf.data.Dataset.from_tensor_slices((tokens[:, :-1], tokens[:, 1:], weights))
    return rows.batch(B, drop_remainder=True)


def trained_model(**options):
    keras.utils.set_random_seed(1)
    embedding = keras.layers.Embedding(V, D)
    tokens = keras.Input((T,), dtype="int32")
    hidden = keras.layers.LSTM(D, return_sequences=True)(embedding(tokens))
    head = keras_drill.TiedOutput(V, embedding, **options)
    return keras_drill.LanguageModel(keras.Model(tokens, hidden), head)


def described(embedding):
    zeros = keras.layers.Dense(D, use_bias=False, kernel_initializer="zeros")
    encoder = keras_drill.DescriptionLabelEncoder(FEATURES, zeros)
    return keras_drill.OutputLayer(V, embedding, encoder)


HEADS = {
    "drill": lambda embedding: keras_drill.DrillOutput(V, embedding, 2, gated=True),
    "kerbs": lambda embedding: keras_drill.KernelizedBayesianSoftmax(V, num_senses=2 * V),
    "described": described,
}


def untied_model():
    keras.utils.set_random_seed(1)
    tokens = keras.Input((T,), dtype="int32")
    hidden = keras.layers.LSTM(D, return_sequences=True)(keras.layers.Embedding(V, D)(tokens))
    return keras_drill.LanguageModel(keras.Model(tokens, hidden), keras_drill.OutputLayer(V))


def fit(model, **options) -> dict[str, np.ndarray]:
    metrics = [keras_drill.metrics.Perplexity()]
    model.compile(keras.optimizers.SGD(0.5, **options), metrics=metrics, jit_compile=False)
    history = model.fit(dataset(), epochs=2, validation_data=dataset().take(2), verbose=0).history
    arrays = {f"weights_{i}": v.numpy() for i, v in enumerate(model.trainable_variables)}
    return {**arrays, **{name: np.array(values) for name, values in history.items()}}


def train(replicas: int) -> dict[str, np.ndarray]:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
    arrays = {}
    with strategy.scope():
        for name, make in HEADS.items():
            model = trained_model()
            model = model.with_head(make(model.head.embedding))
            arrays |= {f"{name}/{key}": value for key, value in fit(model).items()}
        frozen = trained_model(use_bias=False)
        frozen.head.embedding.trainable = False
        assert frozen.head.labels_are_frozen
        arrays |= {f"frozen/{key}": value for key, value in fit(frozen).items()}
        clipped = fit(untied_model(), global_clipnorm=0.1)  # replicas look up the same words
        arrays |= {f"clipped/{key}": value for key, value in clipped.items()}
        larger = model.with_words(FEATURES[:1], read_as=2)
        arrays |= fit(larger)
    return arrays


if __name__ == "__main__":
    np.savez(sys.argv[2], **train(int(sys.argv[1])))
