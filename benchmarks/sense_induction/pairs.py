"""Word-in-Context task: decides whether two occurrences of a word have the same sense.

Two senses of each word are induced from its contexts in WikiText-2 and in the pairs, without the
gold answers. Words with too few contexts, or that are not a token of the encoder, are not
evaluated. The similarity of two occurrences is compared with the threshold that is best on the
development pairs.
"""

import argparse

import keras
import numpy as np

from benchmarks.sense_induction.data import read_lines, read_pairs
from benchmarks.sense_induction.find_senses import DIM, STATES, STEPS
from benchmarks.sense_induction.read_states import States
from keras_drill.layers import ContextSpace
from keras_drill.workbench.sense_induction import (
    begin_at_clusters,
    find_contexts,
    make_sense_model,
    train_senses,
)

MOST, FEWEST, SENSES = 10, 6, 2
SPLITS = ("dev", "test")


def report_pairs(arguments: argparse.Namespace, states: States) -> None:
    """Accuracy by the similarity of states, contexts and posteriors."""
    pairs, gold = {}, {}
    for split in SPLITS:
        pairs[split], gold[split] = read_pairs(arguments.wic, split)
    found = find_contexts(
        read_lines(arguments.wikitext / "train.txt"),
        sorted({_form(pair) for split in SPLITS for pair in pairs[split]} - {""}),
        MOST,
    )
    known = [w for w, some in found.items() if len(some) >= FEWEST and states.encoder.knows(w)]
    numbers = {word: number for number, word in enumerate(known)}
    evaluated = {s: np.array([_form(pair) in numbers for pair in pairs[s]]) for s in SPLITS}
    print(
        f"\nWord in Context: {len(known)} words; evaluated are {evaluated['dev'].sum()} of "
        f"{len(evaluated['dev'])} development and {evaluated['test'].sum()} of "
        f"{len(evaluated['test'])} "
        f"test pairs, of which {gold['test'][evaluated['test']].mean():.3f} have the same sense\n"
    )
    words = {
        s: [numbers[_form(p)] for p, j in zip(pairs[s], evaluated[s], strict=True) if j]
        for s in SPLITS
    }
    flat = {
        s: [c for p, j in zip(pairs[s], evaluated[s], strict=True) if j for c in p] for s in SPLITS
    }
    gold = {s: gold[s][evaluated[s]] for s in SPLITS}
    masked = {s: states.encode(f"WiC {s}", flat[s]) for s in SPLITS}
    unmasked = {s: states.encode(f"WiC {s}", flat[s], "unmasked") for s in SPLITS}
    text = [c for word in known for c in found[word]]
    text_states = states.encode("WiC words", text)
    ids = np.repeat(np.arange(len(known)), [len(found[word]) for word in known])
    print("| similarity of | accuracy | standard error |")
    print("|---|--:|--:|")
    for name, index in STATES.items():
        own = {s: masked[s][:, index] for s in SPLITS}
        space = ContextSpace(min(DIM, states.encoder.width))
        training = np.concatenate([text_states[:, index], *own.values()])
        space.adapt(training)
        contexts = {s: keras.ops.convert_to_numpy(space(own[s])) for s in SPLITS}
        _accuracy(f"masked states, {name}", {s: _cosine(own[s]) for s in SPLITS}, gold)
        _accuracy(f"contexts, {name}", {s: _cosine(contexts[s]) for s in SPLITS}, gold)
        other = {s: _cosine(unmasked[s][:, index]) for s in SPLITS}
        _accuracy(f"unmasked states, {name}", other, gold)
        targets = np.concatenate([ids, *(np.repeat(words[s], 2) for s in SPLITS)]).astype("int32")
        keras.utils.set_random_seed(0)
        model = make_sense_model(space, [SENSES] * len(known))
        begin_at_clusters(model, training, targets)
        train_senses(model, training, targets, STEPS)
        posteriors = {
            s: keras.ops.convert_to_numpy(
                model.head.sense_posteriors(contexts[s], np.repeat(words[s], 2))
            )
            for s in SPLITS
        }
        _accuracy(f"KerBS posteriors, {name}", {s: _cosine(posteriors[s]) for s in SPLITS}, gold)
        same = posteriors["test"].argmax(axis=-1).reshape(-1, 2)
        _print(f"same argmax, {name}", (same[:, 0] == same[:, 1]) == gold["test"])


def _form(pair) -> str:
    """The word, where both occurrences have the same form."""
    first, second = (context.word.lower() for context in pair)
    return first if first == second and first.isalpha() else ""


def _cosine(states: np.ndarray) -> np.ndarray:
    """Of each two that follow each other."""
    states = states / np.maximum(np.linalg.norm(states, axis=-1, keepdims=True), 1e-12)
    return (states[::2] * states[1::2]).sum(axis=-1)


def _accuracy(name: str, similar: dict[str, np.ndarray], gold: dict[str, np.ndarray]) -> None:
    thresholds = np.quantile(similar["dev"], np.linspace(0, 1, 201))
    best = max(thresholds, key=lambda value: np.mean((similar["dev"] >= value) == gold["dev"]))
    _print(name, (similar["test"] >= best) == gold["test"])


def _print(name: str, right: np.ndarray) -> None:
    error = np.sqrt(right.mean() * (1 - right.mean()) / len(right))
    print(f"| {name} | {right.mean():.3f} | {error:.3f} |", flush=True)
