import numpy as np
import pytest

from tests.senses.synthetic_language import SyntheticLanguage


def test_contexts_are_of_the_words_and_as_spread_as_said():
    language = SyntheticLanguage(words_per_number=7, dim=11)
    contexts, words, clusters = language.sample(30_000, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(language.clusters_of_word)[1:], [7, 7, 7, 7])
    np.testing.assert_array_equal(language.word_of_cluster[clusters], words)
    np.testing.assert_allclose(np.linalg.norm(contexts, axis=1), language.length, rtol=1e-5)
    lengths = [
        np.linalg.norm(contexts[clusters == cluster].mean(0)) / language.length
        for cluster in range(len(language.spread))
    ]
    assert np.corrcoef(language.spread, lengths)[0, 1] < -0.95


@pytest.mark.slow
def test_idle_senses_end_at_the_words_that_need_them():
    pytest.importorskip("tensorflow")
    pytest.importorskip("sklearn")
    from keras_drill.senses.policies import IdleSensePolicy
    from tests.senses.sense_study import figures, train

    language = SyntheticLanguage(seed=3)
    found = figures(language, train(language, IdleSensePolicy(), seed=3, steps=3000))
    assert found["many"] >= 0.9
    assert found["one"] >= 0.8
    assert found["v_measure"] >= 0.7
    assert found["theta"] >= 0.6
