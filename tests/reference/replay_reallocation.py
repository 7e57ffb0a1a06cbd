import numpy as np

from keras_drill.senses.policies import RankingPolicy, SenseStatistics


def replay_reallocation(case: dict, dtype: str) -> dict:
    """Both rounds of a `reallocation_*` case, by the package's policy."""
    setting = {
        name: case[name].reshape(-1)[0] for name in ("min_senses", "max_senses", "reallocate_ratio")
    }
    policy = RankingPolicy(float(setting["reallocate_ratio"]))
    sense_to_word = case["sense_to_word_0"].copy()
    results, changed = {}, []
    for i in range(len(case["changed"])):
        senses, words = policy.moves(
            SenseStatistics(
                sense_to_word=sense_to_word,
                usage=case[f"usage_{i}"].astype(dtype),
                word_log_prob=np.zeros(len(case["word_count"]), dtype),  # not asked for
                word_count=case["word_count"],
                prob_sum=case["target_probability_sum"].astype(dtype),
                min_senses=int(setting["min_senses"]),
                max_senses=int(setting["max_senses"]),
            )
        )
        sense_to_word[senses] = words
        name = f"sense_to_word_{i + 1}"
        # Differing senses, so that the error is 0 or at least 1.
        differing = np.sum(sense_to_word != case[name])
        results[name] = (np.array([1.0, differing]), np.array([1.0, 0.0]))
        changed.append(len(senses))
    results["changed"] = (np.array(changed), case["changed"].reshape(-1))
    return results
