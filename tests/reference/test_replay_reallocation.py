import numpy as np
import pytest

from tests.reference.replay import main
from tests.senses.policies.oracles import ranking_oracle
from tests.senses.policies.test_policies import random_statistics


def two_rounds(seed) -> dict:
    """A case whose results the oracle computed."""
    statistics = random_statistics(seed, ties=False)
    case = {
        "word_count": statistics.word_count,
        "target_probability_sum": statistics.prob_sum,
        "min_senses": np.array(statistics.min_senses),
        "max_senses": np.array(statistics.max_senses),
        "reallocate_ratio": np.array(0.3),
        "sense_to_word_0": statistics.sense_to_word.copy(),
    }
    changed = []
    for i in range(2):
        case[f"usage_{i}"] = np.roll(statistics.usage, i)
        statistics.sense_to_word[:] = case[f"sense_to_word_{i}"]
        statistics.usage[:] = case[f"usage_{i}"]
        case[f"sense_to_word_{i + 1}"], moves = ranking_oracle(statistics, 0.3)
        changed.append(len(moves))
    return {**case, "changed": np.array(changed)}


def test_right_cases_pass(tmp_path):
    for seed in range(11):
        np.savez(tmp_path / f"reallocation_{seed}.npz", **two_rounds(seed))
    assert main([str(path) for path in tmp_path.iterdir()]) == 0


@pytest.mark.parametrize("result", ["sense_to_word_1", "sense_to_word_2", "changed"])
def test_one_wrong_number_fails(result, tmp_path):
    case = two_rounds(3)
    case[result][-1] += 1
    np.savez(tmp_path / "reallocation_a.npz", **case)
    assert main([str(tmp_path / "reallocation_a.npz")]) == 1
