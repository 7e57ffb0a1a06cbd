"""Trains a small model on one or two replicas: `python -m tests.senses.train_on_replicas 2 FILE`.

Writes its weights, statistics and allocations. Logical devices must be made before TensorFlow
starts, so every number of replicas needs a process of its own.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_drill
from keras_drill.senses.policies import RankingPolicy

V, M, D, B, T, BATCHES, INTERVAL = 13, 31, 11, 6, 7, 5, 3


class Statistics(keras.callbacks.Callback):
    """The interval's sums after every batch."""

    def __init__(self):
        super().__init__()
        self.sums = []

    def on_train_batch_end(self, batch, logs=None):
        allocation = self.model.head.allocation
        sums = (allocation.word_count, allocation.log_prob_sum, allocation.prob_sum)
        self.sums.append([keras.ops.convert_to_numpy(total) for total in sums])


def train(replicas: int) -> dict[str, np.ndarray]:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
    keras.utils.set_random_seed(1)
    with strategy.scope():
        embedding = keras_drill.SenseEmbedding(V, D, M, weighting="usage")
        tokens = keras.Input((None,), dtype="int32")
        hidden = keras.layers.Dense(D, activation="tanh")(embedding(tokens))
        head = keras_drill.KernelizedBayesianSoftmax(V, embedding=embedding)
        model = keras_drill.LanguageModel(keras.Model(tokens, hidden), head)
        model.compile(keras.optimizers.SGD(0.5, momentum=0.9), jit_compile=False)
        model.build((B, T))

    rng = np.random.default_rng(2)
    tokens = np.minimum(rng.geometric(0.2, (BATCHES * B, T + 1)) - 1, V - 1).astype("int32")
    weights = (rng.random((BATCHES * B, T)) < 0.8).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((tokens[:, :-1], tokens[:, 1:], weights)).batch(B)
    statistics = Statistics()
    reallocation = keras_drill.SenseReallocation(
        INTERVAL, RankingPolicy(0.3), momentum=0.3, moved_embedding="near"
    )
    model.fit(dataset, epochs=2, shuffle=False, verbose=0, callbacks=[statistics, reallocation])

    arrays = {f"weights_{i}": keras.ops.convert_to_numpy(v) for i, v in enumerate(model.variables)}
    slots = enumerate(model.optimizer.variables)
    arrays.update({f"slots_{i}": keras.ops.convert_to_numpy(v) for i, v in slots})
    for i, name in enumerate(("counts", "log_probs", "probs")):
        arrays[name] = np.stack([sums[i] for sums in statistics.sums])
    counted = np.add.reduceat(weights.sum(1), np.arange(0, BATCHES * B, B))
    return {**arrays, **reallocation.get_state(), "counted": counted}


if __name__ == "__main__":
    np.savez(sys.argv[2], **train(int(sys.argv[1])))
