"""Beam searches of other libraries for `benchmarks.decoding`, each in its own environment.

    python -m benchmarks.decoding_peers KIND FOLDER

FOLDER has the weights and the sources. For every line on standard input, "set", "one" or "check",
the program runs the searches of that task and writes a line. "check" saves the best beams of the
first batch.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

START, END, ROOM = 1, 2, 8
SPECIAL = ["<pad>", "<s>", "</s>"]


def ctranslate2(folder: Path) -> Callable:
    """CTranslate2 in float32, with the model that `export_ctranslate2` wrote."""
    import ctranslate2

    settings = json.loads((folder / "settings.json").read_text())
    translator = ctranslate2.Translator(
        str(folder / "ctranslate2" / "1"),
        compute_type="float32",
        intra_threads=len(os.sched_getaffinity(0)),
    )
    names = np.array(word_names(settings["vocabulary"]))
    ids = {name: i for i, name in enumerate(names)}

    def translate(source):
        results = translator.translate_batch(
            [names[row[row > END]].tolist() for row in source],  # it adds the end token
            beam_size=settings["beams"],
            length_penalty=0,
            max_decoding_length=source.shape[1] + ROOM - 1,
        )
        tokens = np.zeros((len(source), source.shape[1] + ROOM), "int32")
        tokens[:, 0] = START
        for row, result in enumerate(results):
            best = result.hypotheses[0]
            tokens[row, 1 : 1 + len(best)] = [ids[name] for name in best]
        return tokens

    return translate


def word_names(count: int) -> list[str]:
    return [*SPECIAL, *[f"w{i}" for i in range(len(SPECIAL), count)]]


def keras_hub(folder: Path, jit_compile: bool = False) -> Callable:
    """keras-hub's `BeamSampler` around this package's Transformer: every beam has all it needs."""
    import keras_hub
    import tensorflow as tf
    from keras import ops

    from benchmarks.decoding import buffer, make_transformer
    from keras_drill.decoding import LanguageModelStep

    settings = json.loads((folder / "settings.json").read_text())
    model = make_transformer(settings)
    model.load_weights(folder / "model.weights.h5")
    step = LanguageModelStep(model)
    sampler = keras_hub.samplers.BeamSampler(num_beams=settings["beams"])

    def next_words(tokens, cache, index):
        constants, state = cache
        last = ops.take(tokens, index - 1, axis=1)
        hidden, state = step.read(last, constants, state)
        return step.log_probs(hidden), None, (constants, state)

    @tf.function(jit_compile=jit_compile)
    def translate(tokens, source):
        cache = step.begin({"source": source}, *tokens.shape)
        columns = tf.range(tokens.shape[1])
        return sampler(
            next_words,
            tokens,
            cache,
            index=1,
            mask=tf.broadcast_to(columns < 1, tokens.shape),
            stop_token_ids=[END],
        )

    return lambda source: translate(buffer(source), source).numpy()


def addons(folder: Path) -> Callable:
    """tensorflow-addons' `BeamSearchDecoder` around an LSTM."""
    import tensorflow as tf
    import tensorflow_addons as tfa

    with np.load(folder / "lstm.npz") as arrays:
        case = {name: arrays[name] for name in arrays.files}
    cell = tf.keras.layers.LSTMCell(case["h0"].shape[1])
    cell.build((None, case["embeddings"].shape[1]))
    cell.set_weights([case["kernel"], case["recurrent_kernel"], case["bias"]])
    output = tf.keras.layers.Dense(len(case["output_bias"]))
    output.build((None, case["h0"].shape[1]))
    output.set_weights([case["output_kernel"], case["output_bias"]])
    beams = int(case["beams"])
    decoder = tfa.seq2seq.BeamSearchDecoder(
        cell, beams, output_layer=output, maximum_iterations=int(case["steps"])
    )

    @tf.function
    def decode():
        result, _, _ = decoder(
            tf.constant(case["embeddings"]),
            start_tokens=tf.fill([len(case["h0"])], START),
            end_token=END,
            initial_state=[tf.repeat(case[name], beams, axis=0) for name in ("h0", "c0")],
        )
        return result.predicted_ids[:, :, 0]

    return lambda source: decode().numpy()


KINDS = {
    "ctranslate2": ctranslate2,
    "keras-hub": keras_hub,
    "keras-hub-xla": lambda folder: keras_hub(folder, jit_compile=True),
    "addons": addons,
}


def main(kind: str, name: str) -> None:
    folder = Path(name)
    translate = KINDS[kind](folder)
    with np.load(folder / "batches.npz") as arrays:
        batches = [arrays[name] for name in sorted(arrays.files)]
    if kind == "addons":
        batches = batches[:1] * 2  # what it translates are states
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "check":
            np.save(folder / "check.npy", translate(batches[0]))
        for batch in {"set": batches[:-1], "one": batches[-1:]}.get(line.strip(), []):
            translate(batch)
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
