"""What fine-tuning, dynamic evaluation and a neural cache gain on top of trained language models.

    python -m benchmarks.adaptation_study --data ptb --folder runs/adaptation --json found.json \\
        --recipes small-tied small-drill --seeds 0 1 2 --options data.tokenizer=whitespace

Every recipe is trained with every seed, then fine-tuned as AWD-LSTM is: SGD from the best weights,
averaged from the first step, until validation gets worse. Both models are evaluated as they are and
adapted to the text, with settings that are chosen on validation text. The same command again
resumes, and only reads what is finished.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.compare_recipes import interval, train
from benchmarks.timing import describe
from keras_drill.workbench.cli.main import main

WAYS = {
    "as trained": [],
    "cache": ["--cache"],
    "dynamic, SGD": ["--dynamic", "--dynamic-rule", "sgd"],
    "dynamic, RMS": ["--dynamic"],
    "dynamic, RMS, and cache": ["--dynamic", "--cache"],
}
FINE_TUNING = [
    "optimizer.kind=nt-asgd",
    "optimizer.nonmonotone_interval=0",
    "training.stopping=non-monotone",
    "training.average_checkpoints=0",
]


def evaluate(folder: Path, way: str, options: argparse.Namespace) -> float:
    """Test perplexity of a run, adapted in one of the `WAYS`."""
    words = [*WAYS[way], *(["--search-tokens", str(options.search_tokens)] if WAYS[way] else [])]
    if "--dynamic" in words:
        words += ["--dynamic-length", str(options.dynamic_length)]
        words += ["--dynamic-rows", str(options.dynamic_rows)]
    file = folder / f"evaluated{''.join(words)}.json"  # other settings are evaluated anew
    if not file.exists():
        page = str(file.with_suffix(".html"))
        if main(["evaluate", str(folder), *words, "--report", page, "--json", str(file)]):
            raise RuntimeError(f"{folder} could not be evaluated: the message is above")
    (run,) = json.loads(file.read_text())["runs"]
    return run["perplexities"]["test"]


def measure(options: argparse.Namespace, recipe: str, seed: int) -> dict[str, list[float]]:
    """Test perplexities by stage of training, in the order of `WAYS`."""
    trained = options.folder / f"{recipe}-{seed}"
    tuned = options.folder / f"{recipe}-{seed}-fine-tuned"
    common = [f"training.seed={seed}", *options.options]
    train(recipe, options.data, trained, common)
    start = f"training.start_from={trained}"
    settings = [*common, *FINE_TUNING, *options.tuning, start]
    last = {setting.partition("=")[0]: setting for setting in settings}  # an option is given once
    train(recipe, options.data, tuned, list(last.values()))
    stages = {"trained": trained, "fine-tuned": tuned}
    return {
        stage: [evaluate(folder, way, options) for way in WAYS] for stage, folder in stages.items()
    }


def rows_of(found: Sequence[tuple[str, dict[str, list[float]]]]) -> list[list]:
    """Recipe, stage, then the mean over seeds and half the width of its 95 % interval for each way.

    Example:

    >>> of_seed = [{"trained": [81.0 + seed], "fine-tuned": [79.0]} for seed in range(3)]
    >>> rows_of([("tied", stages) for stages in of_seed])
    [['tied', 'trained', [82.0, 2.5]], ['tied', 'fine-tuned', [79.0, 0.0]]]
    """
    rows = []
    for recipe in dict.fromkeys(recipe for recipe, _ in found):
        for stage in ("trained", "fine-tuned"):
            by_way = zip(*(each[stage] for name, each in found if name == recipe), strict=True)
            rows.append([recipe, stage, *map(interval, by_way)])
    return rows


def study(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adaptation_study")
    parser.add_argument("--data", required=True, help="what `keras-drill train --data` takes")
    parser.add_argument("--folder", required=True, type=Path, help="where the runs are kept")
    parser.add_argument("--json", type=Path, help="write what was found, as files under results/")
    parser.add_argument("--recipes", nargs="+", default=["small-tied", "small-drill"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--options", nargs="*", default=[], metavar="section.key=value", help="for all runs"
    )
    parser.add_argument(
        "--tuning",
        nargs="*",
        default=[],
        metavar="section.key=value",
        help="for fine-tuning, instead",
    )
    parser.add_argument(
        "--search-tokens", type=int, default=4000, help="of validation text to choose settings on"
    )
    parser.add_argument("--dynamic-length", type=int, default=5, help="as in `evaluate`")
    parser.add_argument("--dynamic-rows", type=int, default=1, help="as in `evaluate`")
    options = parser.parse_args(argv)
    found = []
    for seed in options.seeds:
        for recipe in options.recipes:
            found.append((recipe, measure(options, recipe, seed)))
            print(found[-1], flush=True)
    table = {"columns": ["recipe", "stage", *WAYS], "rows": rows_of(found)}
    result = {
        "command": shlex.join(
            ["python", "-m", "benchmarks.adaptation_study", *(argv or sys.argv[1:])]
        ),
        "hardware": describe(),
        "seeds": options.seeds,
        "tables": {"test-perplexity": table},
    }
    text = json.dumps(result, indent=2, ensure_ascii=False)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    study()
