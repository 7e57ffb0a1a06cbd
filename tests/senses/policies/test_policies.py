import keras
import numpy as np
import pytest

from keras_drill.senses.policies import RankingPolicy, SenseStatistics, ThresholdPolicy
from tests.senses.policies.oracles import ranking_oracle, threshold_oracle


def random_statistics(seed, ties):
    """Statistics of a random vocabulary, with many equal values where `ties` is set."""
    rng = np.random.default_rng(seed)
    V, min_senses = int(rng.integers(2, 43)), int(rng.integers(1, 3))
    max_senses = min_senses + int(rng.integers(0, 4))
    counts = rng.integers(min_senses, max_senses + 1, V)
    owner = rng.permutation(np.repeat(np.arange(V), counts))
    usage, log_prob = rng.random(len(owner)), -9 * rng.random(V)
    count = rng.integers(0, 50, V)
    if ties:
        usage, log_prob = np.round(usage, 1), np.round(log_prob)
        count = count // 10
    log_prob = np.where(rng.random(V) < 0.2, 0.0, log_prob)
    prob_sum = np.round(count * rng.random(V), 1 if ties else 6)
    return SenseStatistics(owner, usage, log_prob, count, prob_sum, min_senses, max_senses)


def assert_as_oracle(policy, statistics, expected):
    owner = statistics.sense_to_word.copy()
    senses, words = policy.moves(statistics)
    np.testing.assert_array_equal(statistics.sense_to_word, owner)  # left alone
    expected_owner, expected_moves = expected
    assert list(zip(senses.tolist(), words.tolist(), strict=True)) == expected_moves
    owner[senses] = words
    np.testing.assert_array_equal(owner, expected_owner)
    counts = np.bincount(owner, minlength=len(statistics.word_count))
    assert counts.min() >= statistics.min_senses
    assert counts.max() <= statistics.max_senses


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("threshold", [-7.0, -4.0, -1.0, 0.0])
def test_threshold_policy_is_algorithm_1(threshold, ties):
    for seed in range(50):
        statistics = random_statistics(seed, ties)
        expected = threshold_oracle(statistics, threshold)
        assert_as_oracle(ThresholdPolicy(threshold), statistics, expected)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("ratio", [0.005, 0.1, 1.0])
def test_ranking_policy_is_the_authors_loop(ratio, ties):
    for seed in range(50):
        statistics = random_statistics(seed, ties)
        assert_as_oracle(RankingPolicy(ratio), statistics, ranking_oracle(statistics, ratio))


def test_words_that_have_not_occurred_are_not_needy():
    statistics = random_statistics(0, ties=False)
    absent = statistics.word_log_prob == 0
    _, words = ThresholdPolicy(-0.0).moves(statistics)
    assert absent.any() and len(words)
    assert not absent[words].any()


@pytest.mark.parametrize("policy", [ThresholdPolicy(-3.5), RankingPolicy(0.25)])
def test_config_makes_an_equal_policy(policy):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(policy))
    assert type(again) is type(policy)
    assert again.get_config() == policy.get_config()


@pytest.mark.parametrize("threshold", [0.1, float("nan"), "low", None])
def test_impossible_threshold(threshold):
    with pytest.raises(ValueError, match=r"`threshold` must be .* at most 0. Received: threshold="):
        ThresholdPolicy(threshold)


@pytest.mark.parametrize("ratio", [0, -0.1, 1.5, float("nan"), "all"])
def test_impossible_ratio(ratio):
    with pytest.raises(ValueError, match=r"`ratio` must be in \(0, 1\]. Received: ratio="):
        RankingPolicy(ratio)
