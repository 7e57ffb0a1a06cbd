"""A process of `benchmarks.scaling` with the arguments STRATEGY and OPTIONS (JSON). Prints JSON."""

import json
import sys
import time

import keras
import numpy as np
import tensorflow as tf

import keras_drill
from keras_drill.data import ContiguousBatches
from keras_drill.distribute import distribute_batches, strategy

HEADS = {
    "softmax": lambda v, e: keras_drill.SoftmaxOutput(v),
    "tied": keras_drill.TiedOutput,
    "bilinear": keras_drill.BilinearOutput,
    "dual": lambda v, e: keras_drill.DualNonlinearOutput(v, e, e.output_dim),
    "drill": lambda v, e: keras_drill.DrillOutput(v, e, depth=4),
    "mixture": lambda v, e: keras_drill.MixtureOfSoftmaxes(v, e, num_mixtures=3),
    "kerbs": lambda v, e: keras_drill.KernelizedBayesianSoftmax(v, num_senses=2 * v),
}


class Seconds(keras.callbacks.Callback):
    """Time of every step but the first ones, which trace and warm up."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_train_batch_begin(self, batch, logs=None):
        self.start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if batch > 2:
            self.found.append(time.perf_counter() - self.start)


def collectives(model, scheme, data) -> list[int]:
    """Bytes that each collective operation of a training step is given, of the traced graph."""
    with scheme.scope():
        model.optimizer.build(model.trainable_variables)

    @tf.function
    def step(batch):
        scheme.run(model.train_step, (batch,))

    operations = step.get_concrete_function(next(iter(data))).graph.get_operations()
    return [
        operation.inputs[0].dtype.size * operation.inputs[0].shape.num_elements()
        for operation in operations
        if operation.type.startswith("CollectiveReduce")
    ]


def main():
    name, options = sys.argv[1], json.loads(sys.argv[2])
    if name == "mirrored":
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )
    scheme = strategy(name)
    rows, length, size = options["rows"], options["length"], options["vocabulary"]
    with scheme.scope():
        backbone = keras_drill.models.AWDLSTM(
            size, options["width"], options["units"], 2, output_dim=options["width"],
            stateful=True, batch_size=rows,
        )  # fmt: skip
        head = HEADS[options.get("head", "tied")](size, backbone.embedding)
        model = keras_drill.LanguageModel(backbone, head)
        model.build((rows, length))
        model.compile(keras.optimizers.SGD(1.0), jit_compile=False)
    steps, every = options["steps"], rows * scheme.num_replicas_in_sync
    ids = np.random.default_rng(1).integers(0, size, every * length * (steps + 3))
    batches = ContiguousBatches(ids, every, length)
    data = distribute_batches(batches, scheme)
    told = {"weights": sum(int(np.prod(v.shape)) for v in model.trainable_variables)}
    if steps:
        seconds = Seconds()
        model.fit(data, steps_per_epoch=batches.num_batches, shuffle=False, verbose=0,
                  callbacks=[seconds])  # fmt: skip
        told["seconds"] = min(seconds.found)
    else:
        found = collectives(model, scheme, data)
        told.update(bytes=sum(found), operations=len(found))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
