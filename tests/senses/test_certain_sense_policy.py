import keras
import numpy as np

import keras_drill
from keras_drill.senses.policies import IdleSensePolicy, SenseStatistics
from tests.senses.certain_sense_policy import CertainSensePolicy

D = 7


def statistics_of(head, usage):
    return SenseStatistics(
        np.asarray(head.allocation.sense_to_word),
        usage,
        word_log_prob=np.full(3, -2.0),
        word_count=np.array([5.0, 3.0, 2.0]),
        prob_sum=np.ones(3),
        min_senses=1,
        max_senses=3,
    )


def test_one_of_two_senses_that_share_a_cluster_goes():
    """Word 0 has two senses in one place, word 1 two that contexts tell apart."""
    head = keras_drill.KernelizedBayesianSoftmax(3, num_senses=5, max_senses=3)
    head.build((None, D))
    head.allocation.assign([0, 0, 1, 1, 2])
    directions = np.eye(D, dtype="float32")[[0, 0, 1, 2, 3]]
    head.label_embeddings.assign(5 * directions)
    contexts = 5 * directions[[0, 0, 2, 3, 4]]
    words = np.array([0, 0, 1, 1, 2], "int32")
    policy = CertainSensePolicy()
    policy.observe(head, contexts, words, kept=0.0)
    used, logs = policy.sums
    np.testing.assert_allclose(used, 0.2, atol=1e-6)
    np.testing.assert_allclose(np.exp(logs / used), [0.5, 0.5, 1, 1, 1], atol=1e-6)
    statistics = statistics_of(head, usage=np.array([0.21, 0.19, 0.2, 0.2, 0.2]))
    assert not len(IdleSensePolicy().moves(statistics)[0])
    senses, to_words = policy.moves(statistics)
    assert (senses.tolist(), to_words.tolist()) == ([1], [1])  # word 1 needs most
    np.testing.assert_allclose(policy.sums[:, 1], [0.2, 0.0], atol=1e-6)


def test_averages_are_kept_between_intervals():
    keras.utils.set_random_seed(0)
    head = keras_drill.KernelizedBayesianSoftmax(3, num_senses=5, max_senses=3)
    head.build((None, D))
    contexts = np.random.default_rng(0).normal(size=(11, D)).astype("float32")
    policy = CertainSensePolicy()
    policy.observe(head, contexts, np.arange(11, dtype="int32") % 3, kept=1.0)
    np.testing.assert_allclose(policy.sums, [[0.2] * 5, [0.0] * 5])
