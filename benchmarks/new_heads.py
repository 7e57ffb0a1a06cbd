"""Compares heads that replace the softmax of a trained tied model, after equally many epochs.

    python -m benchmarks.new_heads --folder build/new-heads

A small AWD-LSTM with a tied softmax is trained on the demo's text until validation stops improving,
for each seed. From its weights, every head, including the tied softmax itself, is fine-tuned for
the same number of epochs with Adam. The same command resumes an interrupted comparison.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

import keras

import keras_drill
from keras_drill.data import (
    ContiguousBatches,
    Corpus,
    EncodedText,
    Tokenizer,
    Vocabulary,
    WordTokenizer,
    pydoc_topics,
)
from keras_drill.models import AWDLSTM

WIDTH = 128


def _kerbs(vocabulary_size: int, embedding, **options):
    return keras_drill.KernelizedBayesianSoftmax(
        vocabulary_size, num_senses=2 * vocabulary_size, use_bias=True, **options
    )


HEADS = {
    "tied": None,
    "labels of its own": lambda v, e: keras_drill.OutputLayer(v),
    "DRILL, depth 1": lambda v, e: keras_drill.DrillOutput(v, e, 1, gated=True),
    "DRILL, depth 2": lambda v, e: keras_drill.DrillOutput(v, e, 2, gated=True),
    "mixture of 5": lambda v, e: keras_drill.MixtureOfSoftmaxes(v, e, 5, gated=True),
    "2 senses a word": lambda v, e: _kerbs(v, e, variant="inner_product"),
    "2 senses a word, kernel": _kerbs,
}


def load(folder: Path, data: str | None, tokenizer: Tokenizer) -> tuple[int, dict]:
    """Number of words, and the splits' ids."""
    corpus = pydoc_topics(folder) if data is None else Corpus(data)
    vocabulary = Vocabulary.build(corpus.train, tokenizer, min_count=2)
    cache = folder / "cache"
    texts = {
        split: EncodedText.encode(lines, tokenizer, vocabulary, cache=cache)
        for split, lines in corpus.splits.items()
    }
    return len(vocabulary), {split: text.ids for split, text in texts.items()}


def tied_model(vocabulary_size: int, seed: int) -> keras_drill.LanguageModel:
    keras.utils.set_random_seed(seed)
    backbone = AWDLSTM(
        vocabulary_size,
        embedding_dim=WIDTH,
        units=256,
        num_layers=2,
        dropout=0.3,
        hidden_dropout=0.2,
        input_dropout=0.3,
        embedding_dropout=0.1,
        weight_dropout=0.2,
        activation_regularization=1.0,
        temporal_activation_regularization=1.0,
        seed=seed,
    )
    backbone.build((None, None))
    head = keras_drill.TiedOutput(vocabulary_size, backbone.embedding)
    return keras_drill.LanguageModel(backbone, head)


def batches_of(ids, epoch: int = 0, seed: int = 0, is_training: bool = True):
    batches = ContiguousBatches(ids, 20 if is_training else 5, 35, is_training, True, seed=seed)
    return batches.dataset(epoch)


def train(model, ids: dict, file: Path, rate: float, epochs: int, patience: int, seed: int) -> dict:
    """Trains, keeps the epoch with the best validation in `file`, and says what it reached."""
    model.compile(
        keras.optimizers.Adam(rate, clipnorm=1.0), metrics=[keras_drill.metrics.Perplexity()]
    )

    def perplexity(split: str) -> float:
        found = model.evaluate(batches_of(ids[split], is_training=False), verbose=0)
        return found[1]

    valid = [perplexity("valid")]
    model.save_weights(file)
    for epoch in range(epochs):
        model.fit(batches_of(ids["train"], epoch, seed), verbose=0)
        valid.append(perplexity("valid"))
        if valid[-1] == min(valid):
            model.save_weights(file)
        elif len(valid) - 1 - valid.index(min(valid)) >= patience:
            break
    model.load_weights(file)
    return {"valid": min(valid), "test": perplexity("test"), "curve": valid}


def measure(folder: Path, size: int, ids: dict, seed: int, epochs: int, at_most: int) -> dict:
    """Results of a seed, by head."""
    first = folder / f"trained-{seed}.weights.h5"
    found = {}
    for name, make in {"trained": None, **HEADS}.items():
        results = folder / f"{name.replace(' ', '-').replace(',', '')}-{seed}.json"
        if not results.exists():
            model = tied_model(size, seed)
            if name == "trained":
                result = train(model, ids, first, 0.005, at_most, 2, seed)
            else:
                model.load_weights(first)
                if make is not None:
                    model = model.with_head(make(size, model.head.embedding))
                file = results.with_suffix(".weights.h5")
                result = train(model, ids, file, 0.001, epochs, math.inf, seed + 1)
            results.write_text(json.dumps(result))
        found[name] = json.loads(results.read_text())
        print(f"seed {seed}, {name}: {found[name]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.new_heads")
    parser.add_argument("--folder", type=Path, default=Path("build/new-heads"))
    parser.add_argument("--data", help="a text; without, the demo's")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--epochs", type=int, default=5, help="of fine-tuning")
    parser.add_argument("--at-most", type=int, default=25, help="epochs before it")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    size, ids = load(options.folder, options.data, WordTokenizer())
    print(f"{size:,} words, {len(ids['train']):,} tokens", flush=True)
    found = [
        measure(options.folder, size, ids, seed, options.epochs, options.at_most)
        for seed in options.seeds
    ]
    print("| head | valid ppl | test ppl | test ppl by seed |\n|---|--:|--:|--:|")
    for name in found[0]:
        valid, test = ([results[name][split] for results in found] for split in ("valid", "test"))
        by_seed = " ".join(f"{x:.1f}" for x in test)
        print(
            f"| {name} | {statistics.mean(valid):.1f} | {statistics.mean(test):.1f} | {by_seed} |"
        )


if __name__ == "__main__":
    main()
