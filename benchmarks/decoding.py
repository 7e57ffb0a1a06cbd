"""Compares beam search with other libraries with the same weights, on a test set and one sentence.

    python -m benchmarks.decoding [--source FILE] [--ctranslate2 PYTHON] [--keras-hub PYTHON]
                                  [--addons PYTHON]

The weights are random, and the end token is improbable, so that every search writes the maximum
number of words and all do the same work. FILE has one sentence per line, and only the numbers of
words are used. Without FILE, lengths are drawn as in image captions (13 words, standard deviation
4). PYTHON is the interpreter of an environment with the library: ctranslate2; keras-hub with
TensorFlow and Keras 3; TensorFlow 2.15 with tensorflow-addons.

CTranslate2 (float32) and `BeamSampler` of keras-hub translate with the same Transformer.
`BeamSampler` uses this package's model, so that only the search differs. `BeamSearchDecoder` of
tensorflow-addons searches with an LSTM from random states. The searches alternate, and ratios are
medians over rounds.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.decoding_peers import word_names
from benchmarks.peer import Peer
from benchmarks.timing import alternate, describe, median_ratio

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

START, END, FIRST_WORD = 1, 2, 3
_PEERS = "benchmarks.decoding_peers"
ROOM = 8  # columns that a translation has more than its source


def main() -> None:
    arguments = parse_arguments()
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        compare_transformers(arguments, Path(folder))
        if arguments.addons:
            compare_lstms(arguments, Path(folder))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, help="a sentence on each line")
    parser.add_argument("--sentences", type=int, default=96, help="how many to translate")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--beams", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    for name in ("ctranslate2", "keras-hub", "addons"):
        parser.add_argument(f"--{name}", metavar="PYTHON")
    return parser.parse_args()


def make_batches(arguments: argparse.Namespace) -> list[np.ndarray]:
    """Sources of similar lengths, padded, in few shapes; the last is one sentence."""
    rng = np.random.default_rng(arguments.seed)
    if arguments.source:
        lines = arguments.source.read_text(encoding="utf-8").splitlines()[: arguments.sentences]
        lengths = np.array([max(len(line.split()), 1) for line in lines])
    else:
        lengths = np.clip(rng.normal(13, 4, arguments.sentences).round(), 3, 40).astype(int)
    lengths = np.sort(lengths)[: len(lengths) // arguments.batch * arguments.batch]
    groups = [*lengths.reshape(-1, arguments.batch), np.array([int(np.median(lengths))])]
    batches = []
    for group in groups:
        width = -(-group.max() // 8) * 8
        words = rng.integers(FIRST_WORD, arguments.vocabulary, (len(group), width))
        columns, ends = np.arange(width), group[:, None] - 1
        words = np.where(columns == ends, END, words)
        batches.append(np.where(columns <= ends, words, 0).astype("int32"))
    return batches


def make_transformer(settings: dict):
    import keras

    import keras_drill

    keras.utils.set_random_seed(settings["seed"])
    backbone = keras_drill.models.Transformer(
        settings["vocabulary"],
        settings["width"],
        num_layers=settings["layers"],
        num_heads=settings["heads"],
        feed_forward_dim=4 * settings["width"],
        seed=settings["seed"],
    )
    model = keras_drill.LanguageModel(
        backbone, keras_drill.TiedOutput(settings["vocabulary"], backbone.embedding)
    )
    model.build({"source": (None, None), "target": (None, None)})
    rng = np.random.default_rng(settings["seed"])
    table = backbone.embedding.embeddings  # so that scores deviate by 1
    table.assign(rng.normal(scale=settings["width"] ** -0.5, size=table.shape))
    bias = np.zeros(settings["vocabulary"])
    bias[[0, END]] = -100.0
    model.head.bias.assign(bias)
    return model


def buffer(source: np.ndarray) -> np.ndarray:
    tokens = np.zeros((len(source), source.shape[1] + ROOM), "int32")
    tokens[:, 0] = START
    return tokens


def export_for_ctranslate2(model, directory: Path) -> None:
    from keras_drill.data import Vocabulary, WhitespaceTokenizer
    from keras_drill.export import export_ctranslate2

    pad, start, end, *_ = names = word_names(model.head.vocabulary_size)
    vocabulary = Vocabulary(names, unknown_token=pad, start_token=start, end_token=end)
    words = WhitespaceTokenizer(), vocabulary
    export_ctranslate2(model, directory, words, source=words)


def compare_transformers(arguments: argparse.Namespace, folder: Path) -> None:
    settings = {**vars(arguments), "heads": max(arguments.width // 64, 2), "source": None}
    batches = make_batches(arguments)
    model = make_transformer(settings)
    (folder / "settings.json").write_text(json.dumps(settings))
    np.savez(folder / "batches.npz", **{f"{i:03}": batch for i, batch in enumerate(batches)})
    model.save_weights(folder / "model.weights.h5")
    own = own_functions(model, arguments.beams, folder)
    peers = {}
    if arguments.ctranslate2:
        export_for_ctranslate2(model, folder / "ctranslate2")
        peers["CTranslate2"] = Peer(arguments.ctranslate2, _PEERS, "ctranslate2", str(folder))
    if arguments.keras_hub:
        peers["keras-hub"] = Peer(arguments.keras_hub, _PEERS, "keras-hub", str(folder))
        peers["keras-hub XLA"] = Peer(arguments.keras_hub, _PEERS, "keras-hub-xla", str(folder))
    for name, peer in peers.items():
        peer("check")
        found = np.load(folder / "check.npy")
        expected = own["tf.function"](buffer(batches[0]), batches[0]).numpy()[:, 0]
        print(f"{name}: {np.mean((found == expected).all(axis=1)):.0%} of best beams are the same")
    words = sum(batch.size + ROOM * len(batch) - len(batch) for batch in batches[:-1])
    count = sum(map(len, batches[:-1]))
    print(
        f"Transformer {arguments.layers} x {arguments.width}, V = {arguments.vocabulary}, "
        f"{arguments.beams} beams, {count} sentences in batches of {arguments.batch}, "
        f"{words / count:.0f} words written for each"
    )
    tasks = {"set": batches[:-1], "one": batches[-1:]}
    for task, parts in tasks.items():
        functions = {
            f"keras_drill {name}": lambda run=run, parts=parts: [
                run(buffer(part), part).numpy() for part in parts
            ]
            for name, run in own.items()
        }
        functions |= {name: lambda peer=peer, task=task: peer(task) for name, peer in peers.items()}
        report(task, count, alternate(functions, arguments.rounds), list(peers))


def own_functions(model, num_beams: int, folder: Path) -> dict:
    """What translates, `(tokens, source)` to the tokens of the beams, by how it is run."""
    import tensorflow as tf

    from keras_drill.decoding import BeamSearch, LanguageModelStep

    step, search = LanguageModelStep(model), BeamSearch(num_beams)

    def translate(tokens, source):
        lengths = tf.ones(tf.shape(source)[:1], tf.int32)
        return search(step, tokens, lengths, inputs={"source": source}, end_token=END).tokens

    unknown = [tf.TensorSpec([None, None], tf.int32)] * 2
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.variables]
    signature = tf.function(translate, input_signature=unknown)
    tf.saved_model.save(module, str(folder / "saved"), signatures=signature)
    served = tf.saved_model.load(str(folder / "saved")).signatures["serving_default"]
    return {
        "eager": translate,
        "tf.function": tf.function(translate),
        "XLA": tf.function(translate, jit_compile=True),
        "SavedModel": lambda tokens, source: served(
            tokens=tf.constant(tokens), source=tf.constant(source)
        )["output_0"],
    }


def compare_lstms(arguments: argparse.Namespace, folder: Path) -> None:
    import tensorflow as tf

    rng = np.random.default_rng(arguments.seed)
    words, width, steps = arguments.vocabulary, arguments.width, 24
    shapes = {
        "embeddings": (words, width),
        "kernel": (width, 4 * width),
        "recurrent_kernel": (width, 4 * width),
        "bias": (4 * width,),
        "output_kernel": (width, words),
        "h0": (arguments.batch, width),
        "c0": (arguments.batch, width),
    }
    case = {name: 0.3 * rng.normal(size=shape) for name, shape in shapes.items()}
    case = {name: array.astype("float32") for name, array in case.items()}
    case["output_bias"] = np.where(np.arange(words) == END, -100.0, 0.0).astype("float32")
    np.savez(folder / "lstm.npz", **case, steps=steps, beams=arguments.beams)
    run = lstm_search(case, arguments.beams, steps)
    own = {"tf.function": tf.function(run), "XLA": tf.function(run, jit_compile=True)}
    peer = Peer(arguments.addons, _PEERS, "addons", str(folder))
    peer("check")
    found, expected = np.load(folder / "check.npy"), own["tf.function"]().numpy()[:, 0, 1:]
    same = np.mean((found == expected).all(axis=1))
    print(f"\ntensorflow-addons: {same:.0%} of best beams are the same")
    print(f"LSTM of {width} units, V = {words}, {arguments.beams} beams, {steps} words each")
    functions = {f"keras_drill {name}": lambda run=run: run().numpy() for name, run in own.items()}
    functions["tensorflow-addons"] = lambda: peer("set")
    seconds = alternate(functions, arguments.rounds)
    report("set", arguments.batch, seconds, ["tensorflow-addons"])


def lstm_search(case: dict, num_beams: int, steps: int):
    import keras
    from keras import ops

    from keras_drill.decoding import AddonsBeamSearch, DecodingStep

    class LSTMStep(DecodingStep):
        def begin(self, inputs, batch_size, length):
            return (), [ops.convert_to_tensor(case["h0"]), ops.convert_to_tensor(case["c0"])]

        def read(self, tokens, constants, state):
            return cell(ops.take(case["embeddings"], tokens, axis=0), state)

        def logits(self, hidden):
            return ops.matmul(hidden, case["output_kernel"]) + case["output_bias"]

        def log_probs(self, hidden):
            return ops.log_softmax(self.logits(hidden))

        def logit_scorer(self):
            return self.logits

    cell = keras.layers.LSTMCell(case["h0"].shape[1])
    cell.build((None, case["embeddings"].shape[1]))
    cell.set_weights([case["kernel"], case["recurrent_kernel"], case["bias"]])
    step, search = LSTMStep(len(case["output_bias"])), AddonsBeamSearch(num_beams)
    tokens = np.zeros((len(case["h0"]), 1 + steps), "int32")
    tokens[:, 0] = START
    return lambda: search(step, tokens, np.ones(len(tokens), int), end_token=END).tokens


def report(task: str, count: int, seconds: dict, baselines: list[str]) -> None:
    title = "sentences/s" if task == "set" else "s a sentence"
    print(f"\n{'':26}{title:>14}" + "".join(f"{'over ' + name:>24}" for name in baselines))
    for name, times in seconds.items():
        median = statistics.median(times)
        figure = count / median if task == "set" else median
        # How many times as fast as each baseline.
        ratios = [median_ratio(seconds[baseline], times) for baseline in baselines]
        line = f"{name:26}{figure:14.3f}" + "".join(f"{ratio:24.2f}" for ratio in ratios)
        print(line, flush=True)


if __name__ == "__main__":
    main()
