import math
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("sacrebleu")

from keras_drill.metrics import score_texts
from keras_drill.workbench.analysis import paired_bootstrap
from tests.metrics.test_text_scores import made_up


@pytest.fixture(scope="module")
def systems():
    """Two sets of texts of different quality, and their references."""
    first, references = made_up()
    second = [
        reference if place % 3 == 0 else text
        for place, (text, reference) in enumerate(zip(first, references, strict=True))
    ]
    third = [text.replace("red", "blue") for text in first]
    return {"first": first, "second": second, "third": third}, references


def test_the_command_line_of_sacrebleu_says_the_same(systems, tmp_path):
    systems, references = systems
    texts = {**systems, "references": references}
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = (
        "-m sacrebleu references -i first second third -m bleu chrf -w 9 --paired-bs"
        " --paired-bs-n 97 --format text"
    )
    answer = subprocess.run(
        [sys.executable, *command.split()],
        cwd=tmp_path,
        env={**os.environ, "SACREBLEU_SEED": "31", "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout
    number = r"(\d+\.\d+)"
    scores = re.findall(rf"{number} \({number} ± {number}\)", answer)
    p_values = [None, None, *map(float, re.findall(rf"\(p = {number}\)", answer))]
    compared = paired_bootstrap(systems, references, resamples=97, seed=31)
    ours = [scores[name] for name in systems for scores in (compared.bleu, compared.chrf)]
    for each, theirs, p_value in zip(ours, scores, p_values, strict=True):
        low, high = each.interval
        half = (high - low) / 2
        assert (each.score, each.mean, half) == pytest.approx(tuple(map(float, theirs)), abs=1e-4)
        assert each.p_value == (None if p_value is None else pytest.approx(p_value, abs=6e-5))
    assert compared.bleu_signature in answer and compared.chrf_signature in answer


def test_scores_are_those_of_the_corpus_and_signatures_name_the_draws(systems):
    systems, references = systems
    compared = paired_bootstrap(systems, references, resamples=19, lowercase=True)
    for name, hypotheses in systems.items():
        scores = score_texts(hypotheses, references, lowercase=True)
        assert compared.bleu[name].score == pytest.approx(scores.bleu)
        assert compared.chrf[name].score == pytest.approx(scores.chrf)
    assert "bs:19|seed:12345|case:lc" in compared.bleu_signature


def test_a_difference_is_found_where_there_is_one(systems):
    systems, references = systems
    noise = {"first": systems["first"], "same": systems["first"][:-1] + [""]}
    assert not paired_bootstrap(noise, references).bleu["same"].is_significant
    compared = paired_bootstrap(systems, references)
    assert compared.bleu["second"].is_significant
    low, high = compared.bleu["second"].interval
    assert low < compared.bleu["second"].score < high
    assert not compared.bleu["first"].is_significant


def test_equal_systems_do_not_differ(systems):
    systems, references = systems
    compared = paired_bootstrap(dict.fromkeys("ab", systems["first"]), references, resamples=19)
    assert compared.bleu["b"].p_value == compared.chrf["b"].p_value == 1


def test_one_sentence_tells_nothing_about_chance():
    compared = paired_bootstrap({"a": ["one dog"], "b": ["a dog"]}, ["a dog"], resamples=19)
    for score in (*compared.bleu.values(), *compared.chrf.values()):
        assert score.p_value is None and not score.is_significant
        assert math.isnan(score.mean) and all(map(math.isnan, score.interval))


def test_the_seed_is_the_callers_and_the_environment_stays(systems, monkeypatch):
    systems, references = systems

    def interval(seed):
        return paired_bootstrap(systems, references, resamples=19, seed=seed).bleu["second"]

    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    first = interval(5)
    assert "SACREBLEU_SEED" not in os.environ
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    assert interval(5) == first != interval(11)
    assert os.environ["SACREBLEU_SEED"] == "7"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"systems": {}}, "`systems` must have at least one"),
        ({"systems": {"x": ["a"]}}, r"`systems\['x'\]` and `references` must have the same length"),
        ({"seed": 0}, "`resamples` and `seed` must be at least 1"),
        ({"resamples": 0}, "`resamples` and `seed`"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    arguments = {"systems": {"x": ["a", "b"]}, "references": ["a", "b"]}
    with pytest.raises(ValueError, match=message) as raised:
        paired_bootstrap(**(arguments | changed))
    assert "Received: " in str(raised.value)
