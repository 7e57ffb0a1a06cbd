import importlib.util
import re
import shutil

import pytest

from keras_drill.workbench.cli.main import main

pytest.importorskip("scipy")


@pytest.mark.slow
def test_two_runs_are_analyzed_and_compared(folder, drill_run, capsys):
    capsys.readouterr()
    assert main(["analyze", str(folder / "tied"), str(drill_run), "--tokens", "101"]) == 0
    out = capsys.readouterr().out
    assert "at 101 tokens" in out
    assert re.search(r"^tied +tied softmax +\d+\.\d\d +9 +9 +\d", out, re.M)
    assert re.search(r"^drill +DRILL, depth 1, relu +\d+\.\d\d +9 +9 +\d", out, re.M)
    sets = re.findall(r"^(?:tied|drill) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", out, re.M)
    assert len(sets) == 2
    for words, *parts in sets:
        assert sum(map(int, parts)) == int(words) and parts[-1] == "0"
    assert "Nats per token by word frequency" in out
    page = (folder / "analysis.html").read_text()
    assert "Rank of the log-probabilities" in page and "By word frequency" in page


def test_one_run_gets_its_own_page_and_options_are_heard(folder, tmp_path, capsys):
    (tmp_path / "other.txt").write_text("the cat sees a dog .\n" * 30)
    words = ["analyze", str(folder / "tied"), "--data", str(tmp_path / "other.txt")]
    words += ["--tokens", "5", "--bound", "0.001", "--max-programs", "0"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "at 5 tokens" in out and "≥ 5" in out
    assert not re.search(r"tied +\d+ +\d+ +\d+ +\d+ +0$", out, re.M)  # some are undecided
    page = (folder / "tied" / "analysis-other.txt.html").read_text()
    assert "By word frequency" not in page and str(tmp_path / "other.txt") in page
    assert re.search(rf"^other.txt +tied +{tmp_path}/other.txt +30 +210$", out, re.M)


def test_without_scipy_words_stay_undecided_and_it_is_said(folder, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["analyze", str(folder / "tied"), "--tokens", "5", "--bound", "0.001"]) == 0
    out = capsys.readouterr().out
    assert "pip install 'keras-drill[analysis]'" in out
    assert not re.search(r"tied +\d+ +\d+ +\d+ +\d+ +0$", out, re.M)


def test_runs_of_one_name_are_refused(folder, tmp_path, capsys):
    shutil.copytree(folder / "tied", tmp_path / "tied")
    assert main(["analyze", str(folder / "tied"), str(tmp_path / "tied")]) == 1
    assert "must have different names" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line, message",
    [
        ("analyze", "arguments are required: RUN"),
        ("analyze a --tokens 1", "--tokens must be at least 2; see"),
        ("analyze a --tolerance 1", "--tolerance must be above 0 and below 1; see"),
        ("analyze a --bound 0", "--bound must be above 0; see"),
        ("analyze a --bound nan", "--bound must be above 0; see"),
        ("analyze a --bound inf", "--bound must be finite; see"),
        ("analyze a --max-programs -1", "--max-programs must be at least 0; see"),
    ],
)
def test_wrong_usage_gets_one_message(line, message, capsys):
    status = main(line.split())
    out, err = capsys.readouterr()
    assert (status, out) == (2, "") and err.count("\n") == 1 and message in err
