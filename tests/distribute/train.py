"""Trains small models on one device, two replicas or two workers: `python -m ... NAME FILE`.

Writes weights, sense statistics, moves, the switch of NT-ASGD and what `fit` reports. Devices are
made before TensorFlow starts, so every number of them needs a process of its own. A second
argument of workers, TF_CONFIG, says which of them this is.
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import keras_drill
from keras_drill.callbacks import NonMonotonicAveraging, ResetState
from keras_drill.data import ContiguousBatches, EncodedText, PairBatches, SentenceBatches
from keras_drill.distribute import distribute_batches, is_chief, strategy
from keras_drill.senses.policies import RankingPolicy

V, M, D, B, T, EPOCHS = 13, 31, 11, 6, 7, 4


class Steps(keras.callbacks.Callback):
    """The loss that was reported so far, after every batch."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(self.model.get_metrics_result()["loss"]))


def text(rng, lines=80):
    lengths = rng.integers(2, 12, lines).astype("int32")
    ids = np.minimum(rng.geometric(0.2, lengths.sum()) + 2, V - 1).astype("int32")
    ids[np.cumsum(lengths) - 1] = 1
    return EncodedText(ids, lengths)


def stateful(replicas):
    """A language model that carries its state, with dropped-in AR, TAR and senses that move."""
    senses = keras_drill.SenseEmbedding(V, D, M, weighting="usage")
    backbone = keras_drill.models.AWDLSTM(
        V, D, 7, 1, embedding=senses, output_dim=D, dropout=0.0, hidden_dropout=0.0,
        input_dropout=0.0, embedding_dropout=0.0, weight_dropout=0.0, stateful=True,
        batch_size=B // replicas,
    )  # fmt: skip
    backbone.recurrent_layers[0].kernel_regularizer = keras.regularizers.L2(0.1)
    model = keras_drill.LanguageModel(
        backbone, keras_drill.KernelizedBayesianSoftmax(V, embedding=senses)
    )
    model.build((B // replicas, T))
    ids = text(np.random.default_rng(1)).ids
    train = ContiguousBatches(ids, B, T, first_token=1)
    valid = ContiguousBatches(ids[:150], B, T, padding=True, first_token=1)
    return model, train, valid, keras.optimizers.SGD(0.5, momentum=0.9, global_clipnorm=0.1)


def sentences(replicas):
    """Masked padding, unequal from replica to replica; the last batch has two rows. The loss was
    scaled, and is not."""
    embedding = keras.layers.Embedding(V, D, mask_zero=True)
    backbone = keras.Sequential([embedding, keras_drill.layers.LSTM(D, return_sequences=True)])
    model = keras_drill.LanguageModel(backbone, keras_drill.TiedOutput(V, embedding))
    train = SentenceBatches(text(np.random.default_rng(1)), B, end_id=1)
    optimizer = keras.optimizers.Adam(0.02)
    model.compile(keras.optimizers.LossScaleOptimizer(optimizer))
    return model, train, train, optimizer


def pairs(replicas):
    """Batches of so many tokens: of one pair, too, which leaves a replica without rows."""
    backbone = keras_drill.models.RecurrentEncoderDecoder(V, D, 7, seed=1)
    model = keras_drill.SequenceToSequence(
        backbone, keras_drill.OutputLayer(V, embedding=backbone.embedding)
    )
    rng = np.random.default_rng(1)
    train = PairBatches(text(rng), text(rng), end_id=1, start_id=2, batch_tokens=40)
    return model, train, train, keras.optimizers.Adam(0.02)


def untied(replicas):
    """Words of which replicas look up the same, and some more than once, in a table of input; an
    optimizer of its own for tables, where this Keras has several in one; a loss that is scaled
    after one that was not."""
    backbone = keras.Sequential(
        [keras.layers.Embedding(V, D), keras_drill.layers.LSTM(D, return_sequences=True)]
    )
    model = keras_drill.LanguageModel(backbone, keras_drill.OutputLayer(V))
    train = SentenceBatches(text(np.random.default_rng(1)), B, end_id=1)
    optimizer = tables = keras.optimizers.Adam(0.02, clipnorm=0.01)
    if hasattr(keras.optimizers, "MultiOptimizer"):
        others = keras.optimizers.SGD(0.5, momentum=0.9, global_clipnorm=0.1)
        optimizer = keras.optimizers.MultiOptimizer(lambda v: tables if v.shape[0] == V else others)
    model.compile(optimizer)
    scaled = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=8.0)
    return model, train, train, scaled


MODELS = {"stateful": stateful, "sentences": sentences, "pairs": pairs, "untied": untied}


def train(kind, scheme):
    keras.utils.set_random_seed(1)
    with scheme.scope():
        model, batches, valid, optimizer = MODELS[kind](scheme.num_replicas_in_sync)
        metrics = [keras_drill.metrics.Perplexity(), "accuracy"]
        model.compile(optimizer, metrics=metrics, jit_compile=False)
    averaging, steps = NonMonotonicAveraging("val_loss", 0), Steps()
    callbacks = [ResetState(), averaging, steps]
    if kind == "stateful":
        callbacks.append(
            keras_drill.SenseReallocation(
                3, RankingPolicy(0.3), momentum=0.3, moved_embedding="near"
            )
        )
    history = {}
    for epoch in range(EPOCHS):
        if epoch == 1:  # worse than the best: averaging begins
            averaging.check(2 * averaging.losses[0])
        logs = model.fit(
            distribute_batches(batches, scheme, epoch),
            steps_per_epoch=batches.num_batches,
            validation_data=distribute_batches(valid, scheme),
            validation_steps=valid.num_batches,
            initial_epoch=epoch,
            epochs=epoch + 1,
            shuffle=False,
            verbose=0,
            callbacks=callbacks,
        ).history
        history = {name: [*history.get(name, []), *values] for name, values in logs.items()}
    arrays = {
        f"weights_{i}": keras.ops.convert_to_numpy(v)
        for i, v in enumerate(model.weights)
        if tuple(v.shape)[:1] != (B // scheme.num_replicas_in_sync,)
    }
    slots = enumerate(model.optimizer.variables)
    arrays.update({f"slots_{i}": keras.ops.convert_to_numpy(v) for i, v in slots})
    arrays.update({f"averaging_{name}": a for name, a in averaging.get_state().items()})
    if kind == "stateful":
        arrays.update(callbacks[-1].get_state())
    return {**arrays, "steps": np.array(steps.losses), **history}


if __name__ == "__main__":
    name, file, *kinds = sys.argv[1:]
    if name == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
        )
    scheme = strategy(name)
    assert scheme.num_replicas_in_sync == (1 if name == "none" else 2)
    arrays = {
        f"{kind}/{key}": value
        for kind in kinds or MODELS
        for key, value in train(kind, scheme).items()
    }
    np.savez(file, **arrays)
    print("chief" if is_chief(scheme) else "worker")
