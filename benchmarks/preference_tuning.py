"""Compares preference tuning by `head.log_prob` with log-probabilities of all words.

    python -m benchmarks.preference_tuning [--sizes pairs,length,V,d ...] [--json FILE]

The model is the one of the guide "Preference tuning (DPO) in thirty lines", on embeddings alone, so
that the output layer decides. For every size, the table shows the time and the peak memory (beyond
gradients) of the loss and its gradients. The plain formula selects the responses' entries of
`log_softmax(logits)`. Every measurement runs in a separate process; timings alternate.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.side_by_side import columns, compare_methods, measure_once, write_table

SIZES = ("4,256,32000,512", "2,256,128256,512")
METHODS = ("fused", "plain")
GUIDE = Path(__file__).parents[1] / "docs" / "how-to" / "preference-tuning.md"


def make_step(method: str, size: str, seed: int):
    """A compiled function of nothing: the loss, and gradients for the trained model."""
    import keras
    import tensorflow as tf
    from keras import ops

    import keras_drill
    from docs.run_page import CODE

    class PlainHead(keras_drill.TiedOutput):
        def log_prob(self, hidden, targets, sample_weight=None):
            found = ops.take_along_axis(self(hidden), targets[..., None], axis=-1)[..., 0]
            return found * sample_weight

    class Embeddings(keras.Model):
        def __init__(self, embedding):
            super().__init__()
            self.embedding = embedding

        def call(self, inputs, training=None):
            return self.embedding(inputs)

    pairs, length, vocabulary_size, width = map(int, size.split(","))
    keras.utils.set_random_seed(seed)

    def language_model():
        embedding = keras.layers.Embedding(vocabulary_size, width)
        head = {"fused": keras_drill.TiedOutput, "plain": PlainHead}[method]
        return keras_drill.LanguageModel(Embeddings(embedding), head(vocabulary_size, embedding))

    names: dict = {}
    exec(CODE.search(GUIDE.read_text(encoding="utf-8"))[1], names)
    model = names["PreferenceModel"](language_model(), language_model())
    random = np.random.default_rng(seed)
    is_response = np.repeat(np.arange(length)[None] >= length // 4, pairs, axis=0)
    inputs = {}
    for name in ("chosen", "rejected"):
        tokens = random.integers(0, vocabulary_size, (pairs, length))
        inputs[name] = tf.constant(tokens.astype("int32"))
        inputs[f"{name}_weights"] = tf.constant(is_response.astype("float32"))
    model(inputs)
    loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(tf.ones((pairs, 1)), model(inputs, training=True)[:, None])
        variables = [variable.value for variable in model.trainable_variables]
        return loss, *tape.gradient(loss, variables, unconnected_gradients="zero")

    return step


def measure(size: str, rounds: int, seed: int) -> list:
    """A row of the table."""
    arguments = ["--sizes", size, "--seed", str(seed)]
    found = compare_methods("benchmarks.preference_tuning", METHODS, arguments, rounds)
    _, _, vocabulary_size, width = map(int, size.split(","))
    return found.row(size, 4 * vocabulary_size * (width + 1), tolerance=1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preference_tuning")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="pairs,length,V,d")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--once", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        kind, method = options.once
        step, small_step = (
            make_step(method, size, options.seed) for size in (options.sizes[0], "2,64,4096,32")
        )
        print(json.dumps(measure_once(kind, step, small_step)))
        return
    rows = [measure(size, options.rounds, options.seed) for size in options.sizes]
    table = {"columns": columns("pairs × length × V × d", "fused", "plain"), "rows": rows}
    write_table("benchmarks.preference_tuning", "step", table, options.json)


if __name__ == "__main__":
    main()
