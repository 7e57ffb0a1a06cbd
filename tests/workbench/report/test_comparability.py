"""What is said of runs whose figures cannot be compared."""

import dataclasses

from keras_drill.workbench.report import RunSummary, write_report
from keras_drill.workbench.report.comparability import (
    Comparability,
    ComparableFigures,
    PerplexityBasis,
    differences,
    frequency_obstacle,
)

WORDS = {"class": "WordTokenizer", "lowercase": True}
BASIS = PerplexityBasis("0", "19 lines of a.txt", WORDS, frozenset(["<unk>", "<eos>", "the"]))


def changed(**changes):
    return dataclasses.replace(BASIS, **changes)


def test_what_differs_is_told_for_each_run():
    assert differences({"a": BASIS, "b": changed(origin="a copy")}) == []
    others = {
        "text": (changed(text="1", origin="b.txt"), "texts differ (a, b: 19 lines of a.txt; c: b."),
        "tokens": (
            changed(tokens=frozenset(["<unk>", "<eos>", "a"])),
            "the vocabularies differ (a, b: 3 words; c: others: 3 words)",
        ),
        "options": (
            changed(tokenizer={**WORDS, "lowercase": False}),
            "(a, b: WordTokenizer(lowercase=True); c: WordTokenizer(lowercase=False))",
        ),
        "class": (changed(tokenizer={"class": "WhitespaceTokenizer"}), "c: WhitespaceTokenizer()"),
    }
    for other, told in others.values():
        (found,) = differences({"a": BASIS, "b": BASIS, "c": other})
        assert told in found
    everything = changed(text="1", tokenizer={"class": "X"}, tokens=frozenset())
    assert len(differences({"a": BASIS, "b": everything})) == 3


def test_the_model_of_a_tokenizer_is_not_written_out():
    a, b = (
        changed(tokenizer={"class": "SentencePieceTokenizer", "model": letter * 5000})
        for letter in "ab"
    )
    (found,) = differences({"a": a, "b": b})
    assert len(found) < 150 and len({*found.split("model=")}) == 3


def test_without_counts_nothing_is_compared_by_frequency():
    assert frequency_obstacle(BASIS, BASIS, ("a", "b"), [1, 2, 3]) is None
    assert "word counts of the training text of a are unknown" in frequency_obstacle(
        BASIS, BASIS, ("a", "b"), None
    )
    other = changed(text="1")
    assert "the texts differ" in frequency_obstacle(BASIS, other, ("a", "b"), [1, 2, 3])


def write(tmp_path, compared, signatures=("x", "x")):
    runs = [
        RunSummary(
            name,
            test_perplexity=perplexity,
            scores={"test BLEU": bleu},
            signatures={"BLEU": signature},
        )
        for name, perplexity, bleu, signature in zip(
            "ab", (7.5, 8.5), (31.5, 32.5), signatures, strict=True
        )
    ]
    path = write_report(tmp_path / "page.html", runs, compared=compared)
    return path.read_text(encoding="utf-8")


def test_only_what_can_be_compared_is_in_bold(tmp_path):
    alike = Comparability("test", "ab")
    page = write(tmp_path, [alike])
    assert "<strong>7.50" in page and "<strong>32.50" in page and "lowest" in page
    page = write(tmp_path, [alike], signatures=("x", "y"))
    assert "<strong>7.50" in page and "<strong>32.50" not in page
    assert "computed with different settings" in page
    figures = {"a": ComparableFigures(1.25, 0.0, 5.5), "b": ComparableFigures(1.125, 0.01, 6.5)}
    other_words = Comparability("test", "ab", ["the vocabularies differ (…)"], figures=figures)
    page = write(tmp_path, [other_words])
    assert "<strong>7.50" not in page and "<strong>32.50" in page and "lowest" not in page
    assert "<strong>1.1250" not in page and "<strong>1.2500" not in page
    page = write(tmp_path, [dataclasses.replace(other_words, is_spelled_alike=True)])
    assert "<strong>1.1250" in page and "perplexity of known words" not in page
    page = write(tmp_path, [dataclasses.replace(other_words, known_targets=17)])
    assert "<strong>5.50" in page
    other_text = Comparability("test", "ab", ["the texts differ (…)"], is_same_text=False)
    page = write(tmp_path, [other_text])
    assert "<strong>" not in page and "evaluate the runs on the same text" in page


def test_another_text_that_can_be_compared_stays_ranked(tmp_path):
    differs = Comparability("valid", "ab", ["the texts differ (…)"], is_same_text=False)
    assert "<strong>7.50" in write(tmp_path, [differs, Comparability("test", "ab")])
