import numpy as np
import pytest

pytest.importorskip("sacrebleu")

from keras_drill.tasks.sequence_to_sequence.config import DecodingConfig
from keras_drill.tasks.sequence_to_sequence.judge import Answers, report_sections

SOURCES = ["ein Hund", "zwei Hunde"]
REFERENCES = ["a dog", "two dogs"]


def answers(*texts, sources=SOURCES):
    log_probs = {"test": np.log([1 / 5, 1 / 20])}
    return Answers.score(log_probs, "test", sources, REFERENCES, list(texts), tokenize="13a")


def heads(judged):
    sections = report_sections(DecodingConfig(), judged)
    return ["".join(section.find("h2").itertext()) for section in sections]


def test_answers_to_the_same_sources_are_compared():
    tied = answers("a cat", "two dogs")
    assert heads({"tied": tied}) == [
        "Scores of the texts",
        "By length of the source",
        "Texts side by side",
    ]
    assert "Where the models differ most" in heads(
        {"tied": tied, "drill": answers("a dog", "two dogs")}
    )


def test_answers_to_different_sources_are_not():
    judged = {
        "tied": answers("a cat", "two dogs"),
        "drill": answers("a dog", "dogs", sources=["x", "y"]),
    }
    (section,) = report_sections(DecodingConfig(), judged)
    assert "the runs answered different sources" in "".join(section.itertext())


def test_perplexities_are_ranked_where_they_can_be_compared():
    judged = {"tied": answers("a cat", "two dogs"), "drill": answers("a dog", "two dogs")}
    assert judged["tied"].perplexities == {"test": pytest.approx(10)}
    for ranks, bold in ((True, 2), (False, 0)):
        (scores, *_) = report_sections(DecodingConfig(), judged, ranks)
        shown = [cell.text for cell in scores.iter("strong")]
        assert shown.count("10.00") == bold


def test_runs_that_answered_nothing_have_no_sections():
    assert heads({"tied": Answers({})}) == []
    assert heads({"tied": answers("a", "b"), "drill": Answers({"valid": 3.0})}) == []
