"""Tests whether sense allocation finds the senses of a synthetic language with known senses.

    python -m benchmarks.synthetic_senses [--seeds 3] [--senses 2.5] [--steps 4000]
        [--momentum 0.005] [--moved near] [--policies "idle sense, 0.1" ...]

A KerBS head alone is trained on contexts and words of `tests.senses.synthetic_language`: words with
one to four clusters of contexts, 2.5 on average. The program prints means over seeds, each with its
own language and initial weights, without reallocation and with every policy.
"""

import argparse
import copy
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from benchmarks.timing import describe
from keras_drill.senses.policies import IdleSensePolicy, RankingPolicy, ThresholdPolicy
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 0")
    parser.add_argument("--senses", type=float, default=2.5, help="senses per word, on average")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--momentum", type=float, default=MOMENTUM, help="of the running means")
    parser.add_argument("--moved", default="keep", help="embeddings of moved senses: keep or near")
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES)
    arguments = parser.parse_args()
    print(describe())
    start = time.time()
    for number, name in enumerate(arguments.policies):
        results = []
        for seed in range(arguments.seeds):
            language = SyntheticLanguage(seed=seed)
            head = train(
                language,
                copy.copy(POLICIES[name]),  # one has a state
                arguments.senses,
                seed,
                arguments.steps,
                arguments.momentum,
                arguments.moved,
            )
            results.append(figures(language, head))
        if not number:
            print("| policy |", " | ".join(results[0]), "|")
            print("|---|" + "--:|" * len(results[0]))
        means = [np.mean([result[key] for result in results]) for key in results[0]]
        print(f"| {name} |", " | ".join(f"{mean:.2f}" for mean in means), "|", flush=True)
    print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
