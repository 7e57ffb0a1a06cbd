import dataclasses
import json

import numpy as np
import pytest

pytest.importorskip("sacrebleu")

from keras_drill.workbench.tasks.sequence_to_sequence.ceiling import Ceiling
from keras_drill.workbench.tasks.sequence_to_sequence.evaluation import Answers, report_sections

SOURCES = ["ein Hund", "zwei Hunde"]
REFERENCES = ["a dog", "two dogs"]


def answers(*texts, sources=SOURCES, lowercase=False, **known):
    log_probs = {"test": np.log([1 / 5, 1 / 20])}
    scoring = {"tokenize": "13a", "lowercase": lowercase}
    return Answers.score(log_probs, "test", sources, REFERENCES, list(texts), scoring, **known)


def heads(evaluated):
    sections = report_sections(evaluated)
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
    evaluated = {
        "tied": answers("a cat", "two dogs"),
        "drill": answers("a dog", "dogs", sources=["x", "y"]),
    }
    (section,) = report_sections(evaluated)
    assert "the runs have different sources or references" in "".join(section.itertext())


def test_perplexities_are_ranked_where_they_can_be_compared():
    evaluated = {"tied": answers("a cat", "two dogs"), "drill": answers("a dog", "two dogs")}
    assert evaluated["tied"].perplexities == {"test": pytest.approx(10)}
    for ranks, bold in ((True, 2), (False, 0)):
        (scores, *_) = report_sections(evaluated, ranks)
        shown = [cell.text for cell in scores.iter("strong")]
        assert shown.count("10.00") == bold


def test_runs_that_answered_nothing_have_no_sections():
    assert heads({"tied": Answers({})}) == []
    assert heads({"tied": answers("a", "b"), "drill": Answers({"valid": 3.0})}) == []


def told(evaluated):
    return "".join(report_sections(evaluated)[0].itertext())


def test_the_page_says_what_the_references_themselves_reach():
    ceiling = Ceiling(bleu=93.1, chrf=95.2, exact_match=50, unknown=0.041, changes={"in case": 0.5})
    assert (
        "tied: after encoding and decoding, the references themselves have BLEU 93.10, chrF 95.20 "
        "and 50.0 % exact matches: 4.1 % of their tokens are unknown, 50.0 % differ in case."
    ) in told({"tied": answers("a cat", "two dogs", ceiling=ceiling)})
    perfect = Ceiling(bleu=100.0, chrf=100.0, exact_match=100, unknown=0.0, changes={})
    assert "themselves" not in told({"tied": answers("a cat", "two dogs", ceiling=perfect)})
    figures = answers("a cat", "two dogs", ceiling=ceiling).figures()
    assert json.loads(json.dumps(figures))["ceiling"] == dataclasses.asdict(ceiling)


def test_a_run_in_lower_case_is_compared_in_lower_case():
    evaluated = {"tied": answers("A dog", "two dogs"), "drill": answers("A dog", "two dogs")}
    assert "case:mixed" in told(evaluated)
    evaluated["drill"] = answers("a dog", "two dogs", lowercase=True)
    assert "case:lc" in told(evaluated) and "case:mixed" not in told(evaluated)
