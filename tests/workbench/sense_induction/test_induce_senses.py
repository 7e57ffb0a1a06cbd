import numpy as np
import pytest

from keras_drill.workbench.sense_induction import InducedSenses, find_clusters, induce_senses
from keras_drill.workbench.tasks.errors import RunError
from tests.workbench.sense_induction.tiny_encoder import text, tiny_encoder


@pytest.mark.slow
def test_two_topics_become_two_senses(tmp_path):
    lines, topics = text()
    induced = induce_senses(["Bank"], lines, tiny_encoder(), senses=2, others=5, steps=40)
    assert induced.vocabulary[0] == "bank" and len(induced.vocabulary) == 6
    senses = induced.senses_of("bank")
    found = senses.most_probable
    agreement = np.mean(found == topics)
    assert max(agreement, 1 - agreement) > 0.95 and senses.information > 0.4
    induced.save(tmp_path)
    loaded = InducedSenses.load(tmp_path)
    np.testing.assert_allclose(loaded.senses_of("bank").posteriors, senses.posteriors, atol=1e-6)
    assert loaded.contexts == induced.contexts and loaded.facts == induced.facts


@pytest.mark.slow
def test_equal_contexts_have_one_sense():
    """A text that says the same again and again: senses that no cluster is left for stay finite."""
    lines = ["the bank near water."] * 7 + ["loan with cash."] * 9 + text(20)[0]
    induced = induce_senses(["pool"], [*lines, *["the pool near mud"] * 5], tiny_encoder(),
                            senses=3, others=4, steps=3)  # fmt: skip
    senses = induced.senses_of("pool")
    assert np.isfinite(senses.posteriors).all() and len(set(senses.most_probable)) == 1


def test_fewer_contexts_than_senses():
    lines, _ = text(4)
    with pytest.raises(RunError, match=r"'bank' occurs 4 times in the text, too few for 5 senses"):
        induce_senses(["bank"], lines, tiny_encoder(), senses=5, others=2)
    with pytest.raises(RunError, match=r"'pool' occurs 0 times"):
        induce_senses(["pool"], lines, tiny_encoder(), senses=1, others=2)


def test_a_folder_without_senses(tmp_path):
    with pytest.raises(RunError, match=r"no file induced-senses\.json"):
        InducedSenses.load(tmp_path)


def test_clusters_are_found_whatever_their_order():
    random = np.random.default_rng(1)
    truth = random.choice(3, size=97, p=[0.6, 0.3, 0.1])
    points = 9 * np.eye(5)[truth] + random.normal(size=(97, 5))
    assert (find_clusters(points, 3) == truth).all()  # the largest first


def test_clusters_of_equal_points():
    assert set(find_clusters(np.ones((5, 2)), 3)) <= {0, 1, 2}
    with pytest.raises(ValueError, match=r"the number of points, 5\. Received: number=6"):
        find_clusters(np.ones((5, 2)), 6)
