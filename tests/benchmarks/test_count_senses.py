import numpy as np
import pytest

from benchmarks.sense_induction.count_senses import count_by_mixture, fewest, kept_out


def test_a_third_of_each_word_is_kept_out():
    words = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [31, 7, 5]))
    assert np.bincount(words[kept_out(words)]).tolist() == [10, 2, 1]


def test_the_fewest_senses_at_which_the_likelihood_does_not_fall():
    noise = np.random.default_rng(1).normal(size=(4, 97))
    log_probs = np.array([-3.0, -1.0, -0.99, -1.0])[:, None] + 0.2 * noise
    assert fewest(log_probs) == 2
    assert fewest(np.zeros((4, 5))) == 1


@pytest.mark.parametrize("clusters", [1, 2, 3, 4])
def test_a_mixture_finds_how_many_clusters_there_are(clusters):
    random = np.random.default_rng(clusters)
    which = random.integers(clusters, size=211)
    contexts = 7 * np.eye(11)[which] + random.normal(size=(211, 11))
    assert count_by_mixture(contexts, seed=0) == clusters
