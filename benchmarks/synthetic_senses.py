"""Tests whether sense allocation finds the senses of a synthetic language with known senses.

    python -m benchmarks.synthetic_senses [--seeds 3] [--senses 2.5] [--steps 4000]
        [--momentum 0.005] [--moved near] [--usage posterior probability]
        [--policies "idle sense, 0.1" ...] [--json found.json]

A KerBS head alone is trained on contexts and words of `tests.senses.synthetic_language`: words with
one to four clusters of contexts, 2.5 on average. The program prints means over seeds, each with its
own language and initial weights, without reallocation and with every policy. With two kinds of
usage, every policy is tried with both.
"""

import argparse
import copy
import json
import os
import shlex
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from benchmarks.timing import describe
from keras_drill.senses.policies import IdleSensePolicy, RankingPolicy, ThresholdPolicy
from keras_drill.senses.sense_allocation import USAGE_BY
from tests.senses.certain_sense_policy import CertainSensePolicy
from tests.senses.sense_study import MOMENTUM, STEPS, figures, train
from tests.senses.synthetic_language import SyntheticLanguage

POLICIES = {
    "none": None,
    "threshold, -0.5": ThresholdPolicy(-0.5),
    "threshold, -1": ThresholdPolicy(-1.0),
    "ranking, 0.005": RankingPolicy(0.005),
    "ranking, 0.05": RankingPolicy(0.05),
    "idle sense, 0.1": IdleSensePolicy(0.1),
    "certain sense, 0.6": CertainSensePolicy(0.1, 0.6),
}


def mean_figures(name: str, usage_by: str, options: argparse.Namespace) -> dict[str, float]:
    """Means over seeds, each with its own language and initial weights."""
    results = []
    for seed in range(options.seeds):
        language = SyntheticLanguage(seed=seed)
        policy = copy.copy(POLICIES[name])  # one has a state
        settings = (options.senses, seed, options.steps, options.momentum, options.moved, usage_by)
        results.append(figures(language, train(language, policy, *settings)))
    return {key: float(np.mean([result[key] for result in results])) for key in results[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 0")
    parser.add_argument("--senses", type=float, default=2.5, help="senses per word, on average")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--momentum", type=float, default=MOMENTUM, help="of the running means")
    parser.add_argument("--moved", default="keep", help="embeddings of moved senses: keep or near")
    parser.add_argument("--usage", nargs="+", default=["posterior"], choices=USAGE_BY)
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES)
    parser.add_argument("--json", type=Path, help="write the table, as files under results/")
    options = parser.parse_args()
    hardware = describe()
    print(hardware)
    start = time.time()
    rows = []
    for name in options.policies:
        for usage_by in options.usage if POLICIES[name] else options.usage[:1]:
            found = mean_figures(name, usage_by, options)
            if not rows:
                columns = ["policy", "usage by", *found]
                print(f"| {' | '.join(columns)} |\n|---|---|" + "--:|" * len(found))
            rows.append([name, usage_by, *(round(value, 2) for value in found.values())])
            print("|", " | ".join(map(str, rows[-1])), "|", flush=True)
    print(f"{time.time() - start:.0f} s")
    if options.json:
        result = {
            "command": shlex.join(["python", "-m", "benchmarks.synthetic_senses", *sys.argv[1:]]),
            "hardware": hardware,
            "seeds": list(range(options.seeds)),
            "tables": {"usage": {"columns": columns, "rows": rows}},
        }
        options.json.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
