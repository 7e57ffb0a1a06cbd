"""Compares memory and communication of a training step with and without splitting the vocabulary.

    KERAS_BACKEND=jax XLA_FLAGS=--xla_force_host_platform_device_count=8 \
        python -m benchmarks.sharded_heads

A training step of a `LanguageModel` (an embedding, one dense layer, an output layer, Adam) is
compiled for eight devices from shapes alone; nothing is run or allocated. Memory is XLA's plan for
each device. Bytes are those of the compiled program's collective operations in one step.
"""

import argparse
import collections
import itertools
import time

import jax
import keras

import keras_drill
from benchmarks.collectives import read_collectives
from keras_drill.distribute import layout_map

HEADS = {
    "softmax": lambda v, e: keras_drill.SoftmaxOutput(v, name="head"),
    "tied": lambda v, e: keras_drill.TiedOutput(v, e, name="head"),
    "bilinear": lambda v, e: keras_drill.BilinearOutput(v, e, name="head"),
    "dual": lambda v, e: keras_drill.DualNonlinearOutput(v, e, e.output_dim, name="head"),
    "drill": lambda v, e: keras_drill.DrillOutput(v, e, depth=4, dropout=0.6, name="head"),
    "mixture": lambda v, e: keras_drill.MixtureOfSoftmaxes(v, e, num_mixtures=3, name="head"),
    "kerbs": lambda v, e: keras_drill.KernelizedBayesianSoftmax(
        v, num_senses=2 * v, use_bias=False, name="head"
    ),
}


def compile_step(head: str, vocabulary_size: int, mesh, width: int, batch: int, length: int):
    """A training step, compiled from shapes.

    Args:
        head: One of `HEADS`.
        vocabulary_size: V.
        mesh: Devices that the batch, and that the vocabulary is split over.
        width: Of embeddings and hidden states.
        batch, length: Of all devices' tokens.

    Returns:
        A `jax.stages.Compiled`.
    """
    step, arguments = traced_step(head, vocabulary_size, mesh, width, batch, length)
    return jax.jit(step, donate_argnums=0).lower(*arguments).compile()


def traced_step(head, vocabulary_size, mesh, width, batch, length):
    """The step as a function, and its arguments without values."""
    device_mesh = keras.distribution.DeviceMesh(mesh, ("batch", "model"))
    distribution = keras.distribution.ModelParallel(
        layout_map=layout_map(device_mesh), batch_dim_name="batch"
    )
    models = []

    def make():
        embedding = keras.layers.Embedding(vocabulary_size, width, name="embedding")
        backbone = keras.Sequential([embedding, keras.layers.Dense(width, "tanh")])
        model = keras_drill.LanguageModel(backbone, HEADS[head](vocabulary_size, embedding))
        model.build((batch, length))
        model.compile("adam")
        model.optimizer.build(model.trainable_variables)
        models.append(model)
        return [[v.value for v in some] for some in _state(model)]

    def placed(shape, dtype, layout):
        return jax.ShapeDtypeStruct(
            shape, dtype, sharding=getattr(layout, "backend_layout", layout)
        )

    with distribution.scope():
        jax.eval_shape(make)  # variables without values
        (model,) = models
        state = [
            [placed(v.shape, v.dtype, distribution.get_variable_layout(v)) for v in some]
            for some in _state(model)
        ]
        tokens = placed((batch, length), "int32", distribution.get_data_layout((batch, length)))

    def step(state, tokens, targets):
        with distribution.scope():
            return model.train_step(state, (tokens, targets, None))

    return step, (state, tokens, tokens)


def _state(model):
    return (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )


def planned_bytes(compiled) -> int:
    """Memory that XLA plans for one device, of arguments, results and all between."""
    plan = compiled.memory_analysis()
    return (
        plan.argument_size_in_bytes
        + plan.output_size_in_bytes
        + plan.temp_size_in_bytes
        - plan.alias_size_in_bytes
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--heads", nargs="+", default=["tied", "drill"], choices=HEADS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[2**15, 2**17, 2**18, 2**20])
    parser.add_argument("--meshes", nargs="+", default=["8x1", "2x4", "1x8"])
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    options = parser.parse_args()
    print(
        f"{options.batch}x{options.length} tokens, width {options.width}, jax {jax.__version__}, "
        f"keras {keras.__version__}; 8x1: labels on every device, 1x8: an eighth on each"
    )
    columns = f"{'words':>9s} {'mesh':>5s} {'GiB planned':>12s} {'MiB a step':>11s}"
    print(f"{'head':10s} {columns}  messages")
    for head, size, mesh in itertools.product(options.heads, options.sizes, options.meshes):
        start = time.perf_counter()
        shape = tuple(int(n) for n in mesh.split("x"))
        compiled = compile_step(head, size, shape, options.width, options.batch, options.length)
        found = read_collectives(compiled.as_text())
        total = sum(c.times * c.num_bytes for c in found)
        counts = collections.Counter()
        for collective in found:
            counts[collective.kind] += collective.times
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print(
            f"{head:10s} {size:9d} {mesh:>5s} {planned_bytes(compiled) / 2**30:12.2f} "
            f"{total / 2**20:11.2f}  {kinds} (compiled in {time.perf_counter() - start:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
