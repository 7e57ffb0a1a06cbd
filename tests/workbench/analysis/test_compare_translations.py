import math

import pytest

sacrebleu = pytest.importorskip("sacrebleu")

from keras_drill.metrics import count_words, score_texts  # noqa: E402
from keras_drill.workbench.analysis import (  # noqa: E402
    bleu_by_length,
    compare_translations,
    compare_word_accuracy,
    largest_differences,
    paired_bootstrap,
)
from tests.metrics.test_text_scores import made_up  # noqa: E402

HYPOTHESES, REFERENCES = made_up()
SYSTEMS = {"first": HYPOTHESES, "second": [*REFERENCES[:20], *HYPOTHESES[20:]]}
LENGTHS = [len(text.split()) for text in REFERENCES]


def test_bleu_by_length_is_that_of_the_sentences_of_each_length():
    bins = bleu_by_length(SYSTEMS, REFERENCES, LENGTHS, boundaries=(3, 7, 40), resamples=19)
    assert [bin.label for bin in bins] == ["0–2", "3–6", "7–39"]  # none has forty words
    assert sum(bin.sentences for bin in bins) == len(REFERENCES)
    for bin in bins:
        inside = [place for place, length in enumerate(LENGTHS) if bin.lower <= length < bin.upper]
        assert bin.sentences == len(inside)
        for name, texts in SYSTEMS.items():
            expected = sacrebleu.BLEU().corpus_score(
                [texts[place] for place in inside], [[REFERENCES[place] for place in inside]]
            )
            assert bin.bleu[name].score == pytest.approx(expected.score)
        low, high = bin.bleu["first"].interval
        assert low <= bin.bleu["first"].mean <= high
    assert bins[2].bleu["second"].p_value < 1 and bins[2].bleu["first"].p_value is None


def test_a_length_that_one_sentence_has_tells_nothing_about_chance():
    (bin,) = bleu_by_length({"a": ["a b"], "b": ["a c"]}, ["a b"], [3], resamples=5)
    assert (bin.label, bin.sentences) == ("0–4", 1)
    assert bin.bleu["b"].p_value is None and math.isnan(bin.bleu["b"].interval[0])


@pytest.mark.parametrize("metric", ["chrf", "bleu"])
def test_the_largest_differences_are_found_on_either_side(metric):
    found = largest_differences(HYPOTHESES, SYSTEMS["second"], REFERENCES, 4, metric)
    scorer = sacrebleu.CHRF() if metric == "chrf" else sacrebleu.BLEU(effective_order=True)

    def score(texts, place):
        return scorer.sentence_score(texts[place], [REFERENCES[place]]).score

    differences = {
        place: score(SYSTEMS["second"], place) - score(HYPOTHESES, place) for place in range(53)
    }
    largest = sorted(differences.values(), reverse=True)[:4]
    assert [each.difference for each in found] == pytest.approx(largest)
    for each in found:
        assert each.score_b == score(SYSTEMS["second"], each.index)
        assert each.difference == differences[each.index]
    turned = largest_differences(SYSTEMS["second"], HYPOTHESES, REFERENCES, 4, metric)
    assert [each.difference for each in turned] == [-each.difference for each in found]


def test_those_done_better_come_before_those_done_worse_and_equal_ones_do_not():
    references = ["one dog", "two dogs", "three dogs", "four dogs"]
    ours = ["one", "two dogs", "three dogs", "cat"]
    theirs = ["one dog", "two", "three dogs", "four"]
    found = largest_differences(ours, theirs, references)
    assert [each.index for each in found] == [0, 3, 1] or [each.index for each in found] == [
        3,
        0,
        1,
    ]
    assert [each.difference > 0 for each in found] == [True, True, False]
    assert len(largest_differences(ours, theirs, references, number=1)) == 2
    assert largest_differences(ours, ours, references) == ()


def test_several_references_are_all_looked_at():
    found = largest_differences(["x"], ["a dog"], [["a cat", "a dog"]])
    assert found[0].score_b == 100


def test_a_comparison_is_made_of_its_parts():
    counts = count_words(REFERENCES)
    sources = [f"Satz {text}" for text in REFERENCES]
    compared = compare_translations(
        SYSTEMS, sources, REFERENCES, counts, num_examples=2, resamples=19, seed=3
    )
    assert compared.scores["second"] == score_texts(SYSTEMS["second"], REFERENCES)
    assert compared.bootstrap == paired_bootstrap(SYSTEMS, REFERENCES, resamples=19, seed=3)
    accuracies = compare_word_accuracy(SYSTEMS, REFERENCES, counts, resamples=19, seed=3)
    assert str(compared.by_frequency) == str(accuracies)
    assert compared.differences == {
        "second": largest_differences(HYPOTHESES, SYSTEMS["second"], REFERENCES, 2)
    }
    lengths = [length + 2 for length in LENGTHS]  # Satz, and the full stop apart
    assert str(compared.by_length) == str(
        bleu_by_length(SYSTEMS, REFERENCES, lengths, resamples=19, seed=3)
    )


def test_one_system_and_no_training_text_leave_out_what_they_cannot_tell():
    compared = compare_translations({"only": HYPOTHESES}, REFERENCES, REFERENCES, resamples=5)
    assert compared.by_frequency is None and compared.differences == {}
    assert compared.bootstrap.bleu["only"].p_value is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_translations({"x": ["a"]}, [], ["a"]), "`sources` and `references`"),
        (lambda: bleu_by_length({"x": ["a"]}, ["a"], [1, 2]), "`lengths` must have one number"),
        (
            lambda: bleu_by_length({"x": ["a"]}, ["a"], [-1]),
            "`lengths` must be at least 0. Received: -1",
        ),
        (lambda: largest_differences(["a"], [], ["a"]), "`hypotheses_b` and `references`"),
        (lambda: largest_differences(["a"], ["a"], ["a"], metric="ter"), "`metric` must be"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "Received: " in str(raised.value)
