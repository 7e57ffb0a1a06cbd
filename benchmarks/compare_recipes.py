"""Trains recipes with several seeds, one after the other, and prints their results.

    python -m benchmarks.compare_recipes --data pairs --folder runs/table \\
        --recipes small-translation-tied small-translation-drill --seeds 0 1

    python -m benchmarks.compare_recipes --data text --folder runs/one-at-a-time \\
        --recipes small-drill --vary head.depth=2 head.depth=4 "head.depth=4 head.activation=tanh"

`--vary` trains each recipe as it is, then with each of these changes in turn. Spaces separate the
options of one change. With several seeds, a second table shows means and half the width of 95 %
intervals. `--json` writes it to a file, with differences from the first run. The same command
resumes an interrupted comparison and reads finished runs. Use `nice` on idle cores, since times per
epoch depend on other processes.
"""

import argparse
import collections
import itertools
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.side_by_side import write_table

_COLUMNS = {
    "total_parameters": ("parameters", "{:,}"),
    "output_parameters": ("of the output layer", "{:,}"),
    "best_epoch": ("best epoch", "{}"),
    "seconds_per_epoch": ("s / epoch", "{:.0f}"),
    "valid_perplexity": ("valid ppl", "{:.2f}"),
    "test_perplexity": ("test ppl", "{:.2f}"),
}
_T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}  # Student's, two-sided, by seeds


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__)
    parser.add_argument("--data", required=True, help="what `keras-drill train --data` takes")
    parser.add_argument("--folder", required=True, help="where the runs are kept")
    parser.add_argument("--recipes", nargs="+", required=True, help="names, or TOML files")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument(
        "--options", nargs="*", default=[], metavar="section.key=value", help="for all runs"
    )
    parser.add_argument(
        "--vary", nargs="*", default=[], metavar="section.key=value", help="one at a time"
    )
    parser.add_argument("--json", type=Path, help="file for the means")
    args = parser.parse_args(argv)
    rows = []
    for seed, recipe, change in itertools.product(args.seeds, args.recipes, [None, *args.vary]):
        changes = change.split() if change else []
        folder = Path(args.folder) / "-".join([Path(recipe).stem, *changes, str(seed)])
        train(recipe, args.data, folder, [f"training.seed={seed}", *args.options, *changes])
        rows.append((folder, json.loads((folder / "results.json").read_text())))
        print(f"\n{table(rows)}\n", flush=True)
    if len(args.seeds) > 1:
        print(f"{means(rows)}\n", flush=True)
    if args.json:
        write_table("benchmarks.compare_recipes", "means", differences(rows), args.json)


def train(recipe: str, data: str, folder: Path, options: Sequence[str]) -> None:
    """Trains a run, or what is left of it, in a process of its own."""
    if (folder / "results.json").exists():
        return
    words = [sys.executable, "-m", "keras_drill_command", "train", "--run", str(folder)]
    if not (folder / "config.toml").exists():
        words += [recipe, "--data", data, *(f"--{option}" for option in options)]
    subprocess.run(words, check=True)


def table(rows: Sequence[tuple[Path, dict]]) -> str:
    """A table in Markdown of runs and what is in their `results.json`; nothing where one has none.

    Example:

    >>> scored = {"test_perplexity": 6.5, "scores": {"test BLEU": 36.0}}
    >>> print(table([(Path("tied-0"), scored), (Path("tied-1"), {"test_perplexity": 6.4})]))
    | run | test ppl | test BLEU |
    |---|---:|---:|
    | tied-0 | 6.50 | 36.00 |
    | tied-1 | 6.40 |  |
    """
    known = [name for name in _COLUMNS if any(results.get(name) for _, results in rows)]
    scores = list(dict.fromkeys(name for _, results in rows for name in results.get("scores", {})))
    lines = [["run", *(_COLUMNS[name][0] for name in known), *scores]]
    for folder, results in rows:
        formats = [(_COLUMNS[name][1], results.get(name)) for name in known]
        formats += [("{:.2f}", results.get("scores", {}).get(name)) for name in scores]
        figures = [form.format(value) if value is not None else "" for form, value in formats]
        lines.append([folder.name, *figures])
    return markdown(lines)


def means(rows: Sequence[tuple[Path, dict]]) -> str:
    """A table in Markdown of means over seeds, which end the names of the runs.

    Example:

    >>> runs = [(Path(f"tied-{seed}"), {"test_perplexity": 6.0 + seed}) for seed in (0, 1, 2)]
    >>> print(means(runs))
    | run | seeds | test ppl |
    |---|---:|---:|
    | tied | 3 | 7.00 ± 2.48 |

    A figure that some seeds lack is left out, as it would be the mean of others:

    >>> print(means([*runs, (Path("tied-3"), {"valid_perplexity": 6.2})]))
    | run | seeds | test ppl | valid ppl |
    |---|---:|---:|---:|
    | tied | 4 |  |  |
    """
    figures = by_run(rows)
    columns = list(dict.fromkeys(name for of_run in figures.values() for name in of_run))
    lines = [["run", "seeds", *columns[1:]]]
    for run, of_run in figures.items():
        seeds = of_run["seed"]
        known = (of_run.get(name, []) for name in columns[1:])
        shown = [mean_and_interval(x) if len(x) == len(seeds) else "" for x in known]
        lines.append([run, str(len(seeds)), *shown])
    return markdown(lines)


def differences(rows: Sequence[tuple[Path, dict]]) -> dict[str, list]:
    """Means of runs over seeds, and of their differences from the first run with the same seed.

    Example:

    >>> names = ["tied-0", "tied-1", "drill-0", "drill-1"]
    >>> runs = [(Path(name), {"test_perplexity": 3.0 * i}) for i, name in enumerate(names)]
    >>> differences(runs)["columns"]
    ['run', 'test ppl', 'test ppl beyond tied']
    >>> differences(runs)["rows"]
    [['tied', [1.5, 19.06], ''], ['drill', [7.5, 19.06], [6.0, 0.0]]]
    >>> differences(runs[:2])
    {'columns': ['run', 'test ppl'], 'rows': [['tied', [1.5, 19.06]]]}
    """
    figures = by_run(rows)
    first, baseline = next(iter(figures.items()))
    names = list(baseline)[1:]
    found = []
    for run, of_run in figures.items():
        if of_run.keys() != baseline.keys() or of_run["seed"] != baseline["seed"]:
            raise ValueError(f"other seeds or figures than those of {first}. Received: {run}")
        beyond = (
            [a - b for a, b in zip(of_run[name], baseline[name], strict=True)] for name in names
        )
        means_of = [interval(of_run[name], 2) for name in names]
        found.append([run, *means_of, *("" if run == first else interval(x, 2) for x in beyond)])
    columns = ["run", *names]
    if len(found) > 1:
        columns += [f"{name} beyond {first}" for name in names]
    return {"columns": columns, "rows": [row[: len(columns)] for row in found]}


def by_run(rows: Sequence[tuple[Path, dict]]) -> dict[str, dict[str, list]]:
    """Seeds of runs, perplexities and scores, in the order of the rows."""
    figures: dict[str, dict[str, list]] = {}
    for folder, results in rows:
        run, _, seed = folder.name.rpartition("-")
        of_run = figures.setdefault(run, collections.defaultdict(list))
        of_run["seed"].append(seed)
        for split in ("valid", "test"):
            if f"{split}_perplexity" in results:
                of_run[f"{split} ppl"].append(results[f"{split}_perplexity"])
        for name, score in results.get("scores", {}).items():
            of_run[name].append(score)
    return figures


def mean_and_interval(values: Sequence[float], digits: int = 2) -> str:
    """The mean, and half the width of its 95 % interval.

    Example:

    >>> mean_and_interval([81.0, 82.0, 83.0]), mean_and_interval([81.5])
    ('82.00 ± 2.48', '81.50')
    """
    shown = f"{statistics.fmean(values):.{digits}f}"
    if len(values) == 1:
        return shown
    return f"{shown} ± {half_width(values):.{digits}f}"


def half_width(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of a mean of two or more values."""
    student = _T_95.get(len(values)) or 1.96 + 2.4 / (len(values) - 2)  # to 0.3 % beyond six
    return student * statistics.stdev(values) / math.sqrt(len(values))


def interval(values: Sequence[float], digits: int = 1) -> list[float] | float:
    """The mean and half the width of its 95 % interval, rounded; one value alone stays a number.

    >>> interval([81.0, 82.0, 83.0]), interval([81.04])
    ([82.0, 2.5], 81.0)
    >>> interval([-0.01])
    0.0
    """
    mean = round(statistics.mean(values), digits) + 0.0  # -0.0 + 0.0 is 0.0
    return mean if len(values) == 1 else [mean, round(half_width(values), digits)]


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown: a row of headings, and others of a name and figures."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"|---|{'---:|' * (len(rows[0]) - 1)}", *lines[1:]])


if __name__ == "__main__":
    main()
