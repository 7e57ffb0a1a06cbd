import collections
import math
import random

import numpy as np
import pytest

pytest.importorskip("sacrebleu")

from keras_drill.metrics import count_words
from keras_drill.workbench.analysis import compare_word_accuracy
from keras_drill.workbench.analysis.compare_by_frequency import FREQUENCY_BOUNDARIES


def test_a_case_counted_by_hand():
    """Training counts: the 9, a 7, dog 3, cat 1; "red" and "cow" are unseen."""
    compared = compare_word_accuracy(
        {"A": ["the the dog", "a cow a dog"], "B": ["the red dog the", "red red a cat"]},
        ["the red dog", ["the cat a cat", "a cow a dog"]],
        {"the": 9, "a": 7, "dog": 3, "cat": 1},
        boundaries=(1, 2, 5),
        tokenize="none",
        resamples=7,
    )
    found = {
        bin.label: [(each.matched, each.written, each.wanted) for each in bin.systems.values()]
        for bin in [*compared.bins, compared.overall]
    }
    assert found == {
        "unseen": [(0, 1, 1), (1, 3, 1)],
        "1": [(0, 0, 2), (1, 1, 2)],
        "2–4": [(1, 2, 1), (1, 1, 1)],
        "≥ 5": [(2, 4, 3), (2, 3, 3)],
        "≥ 0": [(3, 7, 7), (5, 8, 7)],
    }
    assert [bin.types for bin in compared.bins] == [1, 1, 1, 2] and compared.overall.types == 5
    assert [bin.wanted for bin in compared.bins] == [1, 2, 1, 3]
    rare, others = compared.bins[1], compared.bins[2]
    assert math.isnan(rare.systems["A"].precision) and rare.systems["A"].recall == 0
    assert rare.systems["A"].f1 == 0 and rare.systems["B"].f1 == 2 / 3
    assert others.systems["A"].precision == 1 / 2 and others.systems["A"].recall == 1
    assert others.systems["B"].difference == pytest.approx(1 - 2 / 3)
    assert math.isnan(others.systems["A"].difference)


def made_up(sentences=211, seed=5):
    rng = random.Random(seed)
    words = [f"w{rank}" for rank in range(97)]
    counts = {word: int(9_001 / (rank + 1) ** 1.7) for rank, word in enumerate(words)}
    references = [" ".join(rng.choices(words, k=rng.randint(0, 13))) for _ in range(sentences)]
    systems = {
        name: [
            " ".join(rng.choice(words) if rng.random() < noise else word for word in text.split())
            for text in references
        ]
        for name, noise in (("first", 0.4), ("second", 0.3), ("third", 0.41))
    }
    return systems, references, counts


def test_bins_match_a_loop_over_the_words_of_sentences():
    systems, references, counts = made_up()
    compared = compare_word_accuracy(systems, references, counts, resamples=3)
    ends = [0, *FREQUENCY_BOUNDARIES, math.inf]
    assert [bin.lower for bin in compared.bins] == ends[
        0 if compared.bins[0].lower == 0 else 1 : -1
    ]
    for bin in compared.bins:
        upper = math.inf if bin.upper is None else bin.upper
        for name, hypotheses in systems.items():
            matched = written = wanted = 0
            for ours, theirs in zip(hypotheses, references, strict=True):
                ours, theirs = (
                    [word for word in text.split() if bin.lower <= counts[word] < upper]
                    for text in (ours, theirs)
                )
                written, wanted = written + len(ours), wanted + len(theirs)
                for word in ours:
                    if word in theirs:
                        theirs.remove(word)
                        matched += 1
            accuracy = bin.systems[name]
            assert (accuracy.matched, accuracy.written, accuracy.wanted) == (
                matched,
                written,
                wanted,
            )


def test_intervals_hold_the_figures_and_tell_noise_from_difference():
    systems, references, counts = made_up()
    compared = compare_word_accuracy(systems, references, counts)
    for accuracy in compared.overall.systems.values():
        low, high = accuracy.interval
        assert low < accuracy.f1 < high < low + 0.1
    second, third = (compared.overall.systems[name] for name in ("second", "third"))
    assert second.is_significant and second.difference > 0
    assert not third.is_significant
    assert not compared.overall.systems["first"].is_significant
    again = compare_word_accuracy(systems, references, counts)
    assert again == compared or str(again) == str(compared)  # NaN is not equal to itself


def test_intervals_are_those_of_resampled_sentences():
    systems, references, counts = made_up(sentences=31)
    compared = compare_word_accuracy(systems, references, counts, resamples=400, seed=3).overall
    rng = np.random.default_rng(7)

    def f1(name, chosen):
        matched = words = 0
        for index in chosen:
            ours, theirs = (
                collections.Counter(texts[index].split()) for texts in (systems[name], references)
            )
            matched += (ours & theirs).total()
            words += ours.total() + theirs.total()
        return 2 * matched / words

    draws = [rng.integers(31, size=31) for _ in range(400)]
    differences = [f1("second", chosen) - f1("first", chosen) for chosen in draws]
    np.testing.assert_allclose(
        compared.systems["second"].difference_interval,
        np.quantile(differences, [0.025, 0.975]),
        atol=0.02,
    )


def test_bins_of_one_sentence_have_no_interval():
    compared = compare_word_accuracy(
        {"A": ["rare a", "a"], "B": ["a", "a"]}, ["rare a", "a"], {"a": 70, "rare": 1}, resamples=9
    )
    rare, frequent = compared.bins[0].systems["B"], compared.bins[1].systems["B"]
    assert rare.difference == -1 and not rare.is_significant
    assert all(map(math.isnan, (*rare.interval, *rare.difference_interval)))
    assert frequent.interval == (1, 1)
    empty = compared.bins[2].systems["A"]
    assert math.isnan(empty.f1) and math.isnan(empty.recall)


def test_words_are_counted_as_in_the_training_set():
    training = ["The Dog.", "the dog!", "A cat"]
    compared = compare_word_accuracy(
        {"A": ["THE DOG?"]},
        ["the dog."],
        count_words(training, lowercase=True),
        boundaries=(1, 2),
        lowercase=True,
        resamples=3,
    )
    assert [(bin.label, bin.types) for bin in compared.bins] == [
        ("unseen", 0),  # the question mark that was written
        ("1", 1),  # the full stop
        ("≥ 2", 2),
    ]
    assert compared.bins[2].systems["A"].f1 == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"systems": {}}, "`systems` must have at least one"),
        ({"systems": {"x": []}}, r"`systems\['x'\]`"),
        ({"boundaries": (50, 50)}, "`boundaries` must be increasing"),
        ({"resamples": 0}, "`resamples` must be at least 1"),
        ({"confidence": 95}, "`confidence` between 0 and 1"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    arguments = {"systems": {"x": ["a"]}, "references": ["a"], "training_counts": {"a": 3}}
    with pytest.raises(ValueError, match=message) as raised:
        compare_word_accuracy(**(arguments | changed))
    assert "Received: " in str(raised.value)
