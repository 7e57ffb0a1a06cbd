import keras
import numpy as np
import pytest

from keras_drill.senses.policies import IdleSensePolicy, SenseStatistics
from tests.senses.policies.test_policies import assert_as_oracle, random_statistics


def oracle(statistics, idle_share):
    """The rule, one sense at a time."""
    owner, usage = statistics.sense_to_word.copy(), statistics.usage
    words = range(len(statistics.word_count))
    idle = {
        word: [
            sense
            for sense in np.flatnonzero(owner == word)
            if usage[sense] < idle_share * np.bincount(owner, usage)[word]
        ]
        for word in words
    }
    number = {word: int(np.sum(owner == word)) for word in words}
    need = {
        word: -statistics.word_count[word] * statistics.word_log_prob[word] * number[word]
        for word in words
    }
    takers = [
        word
        for word in sorted(words, key=lambda word: (-need[word], word))
        if not idle[word] and number[word] < statistics.max_senses and need[word] > 0
    ]
    givable = []
    for word in words:
        by_usage = sorted(np.flatnonzero(owner == word), key=lambda sense: usage[sense])
        spare = by_usage[: max(number[word] - statistics.min_senses, 0)]
        givable += [sense for sense in spare if sense in idle[word]]
    givable.sort(key=lambda sense: (usage[sense], sense))
    moves = list(zip(givable, takers, strict=False))
    for sense, word in moves:
        owner[sense] = word
    return owner, moves


@pytest.mark.parametrize("idle_share", [0.05, 0.2, 0.4])
def test_moves_are_those_of_the_rule(idle_share):
    num_moves = 0
    for seed in range(50):
        statistics = random_statistics(seed, ties=False)
        expected = oracle(statistics, idle_share)
        assert_as_oracle(IdleSensePolicy(idle_share), statistics, expected)
        num_moves += len(expected[1])
    assert num_moves


def test_large_vocabulary():
    rng = np.random.default_rng(0)
    words, senses = 250_000, 750_000
    statistics = SenseStatistics(
        np.arange(senses) % words,
        rng.exponential(size=senses).astype("float32"),
        -9 * rng.random(words, "float32"),
        rng.integers(0, 100, words).astype("float64"),
        rng.random(words),
        min_senses=1,
        max_senses=4,
    )
    moved, takers = IdleSensePolicy().moves(statistics)
    assert len(moved) == len(set(moved.tolist())) > 10_000
    assert len(takers) == len(set(takers.tolist())) == len(moved)


def test_config_makes_an_equal_policy():
    policy = IdleSensePolicy(0.07)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(policy))
    assert again.get_config() == policy.get_config()


@pytest.mark.parametrize("idle_share", [0, 0.5, -1.0, float("nan"), "few"])
def test_impossible_share(idle_share):
    with pytest.raises(ValueError, match=r"`idle_share` must be in .* Received: idle_share="):
        IdleSensePolicy(idle_share)
