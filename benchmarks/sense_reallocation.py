"""Measures the cost of dynamic sense allocation: its statistics in every step, and a reallocation.

    python -m benchmarks.sense_reallocation [--vocabulary 250000] [--rounds 9]

Statistics: training steps of a GRU language model with a KerBS head (three senses per word, tied
embedding weighted by usage), alternating with and without statistics, and the recording of one step
alone. Reallocation: each policy alone, and a complete reallocation by `SenseReallocator` (running
averages, policy, tables, kernel parameters, optimizer slots). The time beyond the policy's grows
with the size of the embeddings.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks.timing import alternate, describe, median_ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", type=int, default=250_000, help="words of the allocation")
    parser.add_argument("--width", type=int, default=64, help="of the allocation's embeddings")
    parser.add_argument("--step-vocabulary", type=int, nargs="+", default=[10_000, 33_278])
    parser.add_argument("--batch", type=int, nargs=2, default=[20, 35], help="sequences and length")
    parser.add_argument("--units", type=int, default=200, help="of the GRU and its embeddings")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    print(describe())
    allocation_times(arguments)
    for vocabulary in arguments.step_vocabulary:
        step_times(vocabulary, arguments)


def allocation_times(arguments):
    import keras
    import numpy as np

    import keras_drill
    from keras_drill.senses import SenseReallocator
    from keras_drill.senses.policies import (
        IdleSensePolicy,
        RankingPolicy,
        SenseStatistics,
        ThresholdPolicy,
    )

    V, rng = arguments.vocabulary, np.random.default_rng(1)
    head = keras_drill.KernelizedBayesianSoftmax(V)
    head.build((None, arguments.width))
    optimizer = keras.optimizers.Adam()
    optimizer.build(head.trainable_variables)
    allocation = head.allocation
    count = np.minimum(rng.zipf(1.2, V), 1_000_000).astype("float32")
    probability = rng.random(V).astype("float32")
    usage = rng.random(3 * V).astype("float32")
    print(f"\nAn allocation, V = {V:,}, M = {3 * V:,}, d = {arguments.width}, Adam")
    print(f"{'seconds (of the processor)':26} {'moves':>7} {'policy alone':>15} {'in all':>15}")
    for name, policy in {
        "RankingPolicy(0.005)": RankingPolicy(),
        "RankingPolicy(1)": RankingPolicy(1.0),
        "ThresholdPolicy(-2)": ThresholdPolicy(-2.0),
        "ThresholdPolicy(-1)": ThresholdPolicy(-1.0),
        "IdleSensePolicy()": IdleSensePolicy(),
    }.items():
        alone, whole = [], []
        for _ in range(arguments.rounds):
            allocation.assign(np.arange(3 * V) % V)
            allocation.word_count.assign(count)
            allocation.prob_sum.assign(count * probability)
            allocation.log_prob_sum.assign(count * np.log(probability))
            allocation.usage_sum.assign(usage / usage.sum() * count.sum())
            sense_statistics = SenseStatistics(
                np.arange(3 * V, dtype="int32") % V,
                usage,
                np.log(probability),
                count,
                count * probability,
                1,
                4,
            )
            alone.append(clocks(lambda p=policy, s=sense_statistics: p.moves(s)))
            reallocator = SenseReallocator(head, optimizer, policy=policy, momentum=1.0)
            whole.append(clocks(lambda r=reallocator: r.reallocate(1)))
        moves = reallocator.history[-1]["moves"]
        print(f"{name:26} {moves:7} {medians(alone):>15} {medians(whole):>15}", flush=True)


def clocks(function):
    """Seconds, and those of the processor, which other programs disturb less."""
    start = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def medians(seconds):
    wall, processor = (statistics.median(times) for times in zip(*seconds, strict=True))
    return f"{wall:.3f} ({processor:.3f})"


def step_times(vocabulary, arguments):
    import numpy as np

    sequences, length = arguments.batch
    tokens = np.minimum(np.random.default_rng(1).zipf(1.2, (sequences, length + 1)), vocabulary) - 1
    x, y = tokens[:, :-1].astype("int32"), tokens[:, 1:].astype("int32")
    models = {dynamic: make_model(vocabulary, dynamic, arguments) for dynamic in (True, False)}
    functions = {dynamic: lambda m=model: step(m, x, y) for dynamic, model in models.items()}
    functions["record"] = record_alone(models[True].head.allocation, y.reshape(-1))
    seconds = alternate(functions, arguments.rounds)
    ratio = median_ratio(seconds[True], seconds[False])
    print(
        f"\nA training step, V = {vocabulary:,}, M = {3 * vocabulary:,}, GRU {arguments.units}, "
        f"{sequences} x {length} tokens: {statistics.median(seconds[True]):.3f} s with statistics, "
        f"{statistics.median(seconds[False]):.3f} s without: {100 * (ratio - 1):+.1f} % (median of "
        f"rounds); recording alone {1000 * statistics.median(seconds['record']):.2f} ms, "
        f"{100 * median_ratio(seconds['record'], seconds[False]):.2f} %",
        flush=True,
    )


def make_model(vocabulary, dynamic, arguments):
    import keras

    import keras_drill

    keras.utils.set_random_seed(1)
    embedding = keras_drill.SenseEmbedding(
        vocabulary, arguments.units, dynamic=dynamic, weighting="usage"
    )
    tokens = keras.Input((None,), dtype="int32")
    hidden = keras_drill.layers.GRU(arguments.units, return_sequences=True)(embedding(tokens))
    head = keras_drill.KernelizedBayesianSoftmax(vocabulary, embedding=embedding)
    model = keras_drill.LanguageModel(keras.Model(tokens, hidden), head)
    model.compile("sgd", jit_compile=False)
    return model


def record_alone(allocation, targets):
    import numpy as np
    import tensorflow as tf

    log_probs = tf.constant(-np.ones(targets.shape, "float32"))
    posteriors = tf.constant(np.ones((*targets.shape, allocation.max_senses), "float32"))
    record = tf.function(lambda words: allocation.record(words, log_probs, posteriors))
    words = tf.constant(targets)
    return lambda: record(words)


def step(model, x, y):
    float(model.train_on_batch(x, y))


if __name__ == "__main__":
    main()
