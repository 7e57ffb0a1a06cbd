"""Trains a functional model on two replicas with `head(hidden, targets=...)` and with Keras' own
loss, and evaluates a `LanguageModel` there: `python -m ... FILE` writes what came of it.

Logical devices must be made before TensorFlow starts, so it needs a process of its own.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_drill

V, D, B, T = 31, 13, 6, 7

HEADS = {
    "tied": lambda e: keras_drill.TiedOutput(V, e),
    "mixture": lambda e: keras_drill.MixtureOfSoftmaxes(V, e, num_mixtures=2),
    "kerbs": lambda e: keras_drill.KernelizedBayesianSoftmax(V, num_senses=67),
}


def batches() -> tf.data.Dataset:
    """Padding is unequal on the replicas, then one replica has nothing else, then fewer rows."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, V, (2 * B + 5, T)).astype("int32")
    tokens[0, 2:] = tokens[1, 1:] = 0
    tokens[B : B + 3] = 0
    x = {
        "tokens": tokens,
        "targets": rng.integers(0, V, tokens.shape).astype("int32"),
        "weights": rng.random(tokens.shape).astype("float32"),
    }
    return tf.data.Dataset.from_tensor_slices((x, rng.integers(0, 3, len(tokens)))).batch(B)


def make_model(fused: bool) -> keras.Model:
    keras.utils.set_random_seed(3)
    inputs = {
        "tokens": keras.Input((T,), dtype="int32", name="tokens"),
        "targets": keras.Input((T,), dtype="int32", name="targets"),
        "weights": keras.Input((T,), name="weights"),
    }
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    hidden = keras.layers.LSTM(D, return_sequences=True)(embedding(inputs["tokens"]))
    tag = keras.layers.Dense(3, name="tag")(hidden[:, -1])
    head = keras_drill.TiedOutput(V, embedding, name="head")
    loss = {"tag": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    if fused:
        words = head(hidden, targets=inputs["targets"], sample_weight=inputs["weights"])
    else:
        words, loss["head"] = head(hidden), loss["tag"]
        inputs = inputs["tokens"]
    model = keras.Model(inputs, {"tag": tag, "head": words})
    model.compile(keras.optimizers.SGD(0.5), loss, jit_compile=False)
    return model


def train(fused: bool, strategy) -> dict[str, np.ndarray]:
    with strategy.scope():
        model = make_model(fused)
    data = batches()
    if not fused:
        data = data.map(
            lambda x, y: (
                x["tokens"],
                {"tag": y, "head": x["targets"]},
                {"tag": tf.ones_like(y, "float32"), "head": x["weights"]},
            )
        )
    history = model.fit(data, epochs=2, verbose=0).history
    return {"loss": history["loss"], **{v.path: v.numpy() for v in model.trainable_variables}}


def figures(head: str, strategy) -> np.ndarray:
    """Loss, perplexity and accuracies of masked and weighted tokens; then what NumPy finds."""
    keras.utils.set_random_seed(5)
    with strategy.scope():
        embedding = keras.layers.Embedding(V, D, mask_zero=True)
        backbone = keras.Sequential([embedding, keras.layers.LSTM(D, return_sequences=True)])
        output = HEADS[head](embedding)
        model = keras_drill.LanguageModel(backbone, output)
        metrics = [
            keras_drill.metrics.Perplexity(),
            "accuracy",
            "sparse_top_k_categorical_accuracy",
        ]
        model.compile("sgd", weighted_metrics=metrics, jit_compile=False)
        model.build((None, T))
        for i, v in enumerate(model.trainable_variables):  # far from even probabilities
            v.assign(np.random.default_rng(i).normal(size=v.shape))
    data = batches().map(lambda x, y: (x["tokens"], x["targets"], x["weights"]))
    found = model.evaluate(data, verbose=0)
    losses, ranks, weights = [], [], []
    for tokens, targets, weight in data.as_numpy_iterator():
        log_probs = np.asarray(model(tokens), "float64")
        chosen = np.take_along_axis(log_probs, targets[..., None], -1)
        losses.append(-chosen[..., 0])
        ranks.append((log_probs > chosen).sum(-1))
        weights.append(weight * (tokens != 0))
    losses, ranks, weights = (np.concatenate(x) for x in (losses, ranks, weights))

    def mean(values):
        return (weights * values).sum() / weights.sum()

    loss = mean(losses)
    return np.array([found, [loss, np.exp(loss), mean(ranks < 1), mean(ranks < 5)]])


if __name__ == "__main__":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    both = {"fused": train(True, strategy), "keras": train(False, strategy)}
    trained = {f"{kind}/{i}": x for kind in both for i, x in enumerate(both[kind].values())}
    np.savez(sys.argv[1], **trained, **{f"figures/{h}": figures(h, strategy) for h in HEADS})
