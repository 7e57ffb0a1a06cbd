"""Compares heads that replace the softmax of a trained tied model, after equally many epochs.

    python -m benchmarks.new_heads --folder build/new-heads --json results/trained-models.json

A small AWD-LSTM with a tied softmax is trained on the demo's text until validation stops improving,
for each seed. From its weights, every head, including the tied softmax itself, is fine-tuned for
the same number of epochs with Adam. The senses of a word begin as copies of its label, or split
along the first principal direction of the word's contexts. The same command resumes an interrupted
comparison.
"""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

import keras_drill
from benchmarks.compare_recipes import interval
from benchmarks.side_by_side import write_table
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
SPLITS = ("valid", "test")


def kerbs(variant: str, split: float = 0.0) -> Callable:
    """Returns a function that gives a model two senses per word, which `split_senses` parts."""

    def make(model: keras_drill.LanguageModel, ids: np.ndarray) -> keras_drill.LanguageModel:
        size = model.head.vocabulary_size
        new = model.with_head(
            keras_drill.KernelizedBayesianSoftmax(
                size, num_senses=2 * size, use_bias=True, variant=variant
            )
        )
        if split:
            split_senses(new, ids, split)
        return new

    return make


def replaced(make: Callable) -> Callable:
    """Returns a function that gives a model the head that `make` returns."""
    return lambda model, ids: model.with_head(
        make(model.head.vocabulary_size, model.head.embedding)
    )


HEADS = {
    "tied": lambda model, ids: model,
    "labels of its own": replaced(lambda v, e: keras_drill.OutputLayer(v)),
    "DRILL, depth 1": replaced(lambda v, e: keras_drill.DrillOutput(v, e, 1, gated=True)),
    "DRILL, depth 2": replaced(lambda v, e: keras_drill.DrillOutput(v, e, 2, gated=True)),
    "mixture of 5": replaced(lambda v, e: keras_drill.MixtureOfSoftmaxes(v, e, 5, gated=True)),
    "2 senses a word": kerbs("inner_product"),
    "2 senses a word, kernel": kerbs("paper"),
    "2 senses a word, split": kerbs("inner_product", split=1.0),
    "2 senses a word, split less": kerbs("inner_product", split=0.25),
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


def contexts_of(model, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hidden states and targets of a text."""
    states, targets = [], []
    for tokens, words, weights in batches_of(ids, is_training=False):
        is_target = weights.numpy() > 0
        states.append(model.backbone(tokens).numpy()[is_target])
        targets.append(words.numpy()[is_target])
    return np.concatenate(states), np.concatenate(targets)


def split_senses(model: keras_drill.LanguageModel, ids: np.ndarray, deviations: float) -> None:
    """Parts the two senses of each word along the first principal direction of its contexts.

    Over all contexts, the difference of the senses' logits has a standard deviation of twice
    `deviations`. Over the word's contexts its mean is 0. Words with fewer than three keep copies.
    """
    states, targets = contexts_of(model, ids)
    senses = np.argsort(model.head.allocation.sense_to_word, kind="stable").reshape(-1, 2)
    labels, biases = np.array(model.head.label_embeddings), np.array(model.head.bias)
    by_word = np.argsort(targets, kind="stable")
    firsts = np.searchsorted(targets[by_word], np.arange(1, len(senses)))
    for pair, rows in zip(senses, np.split(by_word, firsts), strict=True):
        if len(rows) > 2:
            mean = states[rows].mean(0)
            direction = np.linalg.svd(states[rows] - mean, full_matrices=False)[2][0]
            offset = direction * deviations / (states @ direction).std()
            labels[pair] += [offset, -offset]
            biases[pair] -= [mean @ offset, -mean @ offset]
    model.head.label_embeddings.assign(labels)
    model.head.bias.assign(biases)


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


def measure(options: argparse.Namespace, size: int, ids: dict, seed: int) -> dict:
    """Results of a seed, by head."""
    first = options.folder / f"trained-{seed}.weights.h5"
    found = {}
    for name in ("trained", *options.heads):
        results = options.folder / f"{name.replace(' ', '-').replace(',', '')}-{seed}.json"
        if not results.exists():
            model = tied_model(size, seed)
            if name == "trained":
                result = train(model, ids, first, 0.005, options.at_most, 2, seed)
            else:
                model.load_weights(first)
                model = HEADS[name](model, ids["train"])
                file = results.with_suffix(".weights.h5")
                result = train(model, ids, file, 0.001, options.epochs, math.inf, seed + 1)
            results.write_text(json.dumps(result))
        found[name] = json.loads(results.read_text())
        print(f"seed {seed}, {name}: {found[name]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.new_heads")
    parser.add_argument("--folder", type=Path, default=Path("build/new-heads"))
    parser.add_argument("--data", help="a text; without, the demo's")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--heads", nargs="+", default=list(HEADS), choices=HEADS)
    parser.add_argument("--epochs", type=int, default=5, help="of fine-tuning")
    parser.add_argument("--at-most", type=int, default=25, help="epochs before it")
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    size, ids = load(options.folder, options.data, WordTokenizer())
    print(f"{size:,} words, {len(ids['train']):,} tokens", flush=True)
    found = [measure(options, size, ids, seed) for seed in options.seeds]
    first = options.heads[0]
    rows = []
    for name in found[0]:
        reached = [interval([of_seed[name][split] for of_seed in found]) for split in SPLITS]
        beyond = interval([of_seed[name]["test"] - of_seed[first]["test"] for of_seed in found])
        rows.append([name, *reached, "" if name in ("trained", first) else beyond])
    columns = [
        "output layer",
        "validation perplexity",
        "test perplexity",
        f"test perplexity beyond {first}",
    ]
    table = {"columns": columns, "rows": rows}
    write_table("benchmarks.new_heads", "perplexity", table, options.json)


if __name__ == "__main__":
    main()
