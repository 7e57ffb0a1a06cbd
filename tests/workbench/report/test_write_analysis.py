import dataclasses

import numpy as np
import pytest

from keras_drill.workbench.analysis import ArgmaxableWords, RankEstimate
from keras_drill.workbench.report import RunAnalysis, write_analysis
from tests.workbench.report.test_write_report import _comparison, _Page

_HOSTILE = "<script>alert(1)</script>"
_WORDS = ("the", _HOSTILE, "cat", "dog", "bird")


def _run(name="a", full=False, bound=5, never=(1, 3)):
    unargmaxable = np.isin(np.arange(5), never)
    on_text = np.arange(5) == 0
    none = np.zeros(5, "bool")
    values = np.array([1.0, 0.1, 1e-3, 1e-14, 0.0])
    return RunAnalysis(
        name=name,
        output_layer="tied softmax",
        perplexity=131.5,
        rank=RankEstimate(5 if full else 3, None if full else bound, 5, 7, 1e-10, values),
        argmaxable=ArgmaxableWords(
            on_text, ~(on_text | unargmaxable), unargmaxable, none, 100.0, 1e-6
        ),
        words=_WORDS,
        counts=(70, 2, 5, 9, 1),
    )


def _write(tmp_path, *arguments):
    return _Page(write_analysis(tmp_path / "a.html", *arguments).read_text(encoding="utf-8"))


def test_ranks_words_and_comparisons_are_on_the_page(tmp_path):
    page = _write(
        tmp_path,
        [_run("tied"), _run("drill"), _run("mos", full=True, never=())],
        [_comparison(("tied", "drill")), _comparison(("tied", "mos"))],
    )
    for words in ("tied 3; drill 3; mos ≥ 5", "upper bound", "1e-03", "1e-14", "none", "0.000001"):
        assert words in page.text, words
    assert "Words that tied never chooses" in page.text
    assert "Words that mos never chooses" not in page.text
    assert f"dog · {_HOSTILE}" in page.text  # the most frequent first, and shown as it is
    assert page.texts.count("By word frequency: ") == 2
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_a_single_run_of_full_rank(tmp_path):
    page = _write(tmp_path, [_run(full=True)])
    assert "For a rank with ≥" in page.text and "By word frequency" not in page.text


def test_ranks_of_other_numbers_of_words_are_told_apart(tmp_path):
    other = dataclasses.replace(_run("few"), rank=dataclasses.replace(_run().rank, words=4))
    page = _write(tmp_path, [_run("tied"), other])
    assert "Rank of the log-probabilities: tied 3 of 7 words; few 3 of 4 words." in page.text


def test_the_page_says_why_runs_are_not_compared_by_frequency(tmp_path):
    page = _write(tmp_path, [_run("tied"), _run("few")], (), None, {"few": "the texts differ"})
    assert "By word frequency: few against tied" in page.text
    assert "The runs cannot be compared by word frequency: the texts differ." in page.text


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_runs_need_different_names(tmp_path, names):
    with pytest.raises(ValueError, match=r"`runs` must be .* Received: "):
        write_analysis(tmp_path / "a.html", [_run(name) for name in names])
