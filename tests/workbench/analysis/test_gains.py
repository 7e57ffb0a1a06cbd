import numpy as np
import pytest

from keras_drill.metrics.text_scores import score_texts
from keras_drill.workbench.analysis.gains import bleu_gain, log_prob_gain

REFERENCES = [f"the {a} dog {b} a cat near house {b} ." for a in "xyz" for b in ("sees", "bites")]


def test_a_gain_is_the_ratio_of_sums():
    random = np.random.default_rng(3)
    savings, counts = random.normal(0.2, 1.0, 211), random.integers(0, 9, 211)
    gain = log_prob_gain(savings, counts)
    assert gain.value == pytest.approx(savings.sum() / counts.sum())
    assert gain.interval[0] < gain.value < gain.interval[1]
    assert log_prob_gain(savings, counts) == gain
    lower, upper = log_prob_gain(-savings, counts).interval
    np.testing.assert_allclose((-upper, -lower), gain.interval)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    random = np.random.default_rng(7)
    hits = 0
    for seed in range(200):
        counts = random.integers(1, 9, 101)
        savings = counts * random.normal(0.3, 1.0, 101)
        low, high = log_prob_gain(savings, counts, resamples=200, seed=seed).interval
        hits += low < 0.3 < high
    assert 0.89 < hits / 200 < 0.99


def test_a_gain_in_bleu_is_that_of_sacrebleu():
    ours = [text.replace("near", "at") for text in REFERENCES]
    theirs = [text.replace("cat", "bird") for text in REFERENCES[:3]] + ["nothing ."] * 3
    gain = bleu_gain(ours, theirs, REFERENCES)
    expected = score_texts(ours, REFERENCES).bleu - score_texts(theirs, REFERENCES).bleu
    assert gain.value == pytest.approx(expected)
    assert 0 < gain.interval[0] <= gain.interval[1]
    same = bleu_gain(ours, ours, REFERENCES)
    assert same.value == 0 and same.interval == (0, 0)


def test_there_must_be_something_to_count():
    with pytest.raises(ValueError, match=r"must not be all 0.*Received: .* with sum 0\.0"):
        log_prob_gain(np.zeros(3), np.zeros(3))
