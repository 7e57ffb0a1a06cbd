"""The commands on a tiny run, and wrong input of every kind."""

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import ANY

import pytest

from keras_drill.workbench.cli.main import main


def test_a_run_keeps_what_was_promised(folder):
    kept = {path.name for path in (folder / "tied").iterdir()}
    assert kept >= {
        "config.toml",
        "vocabulary.txt",
        "checkpoints",
        "model.keras",
        "history.csv",
        "results.json",
        "report.html",
    }


@pytest.mark.slow
def test_evaluate_compares_runs(folder, drill_run, tmp_path, capsys):
    runs = [str(folder / "tied"), str(drill_run), str(folder / "kerbs")]
    assert main(["evaluate", *runs, "--report", str(tmp_path / "r.html")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^tied +tied softmax +[\d,]+ +[\d,]+ +\d+\.\d\d +\d+\.\d\d", out, re.M)
    assert "DRILL, depth 1, relu" in out and "KerBS, 3 senses per word" in out
    assert "frequen" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_evaluate_takes_another_text_as_a_whole(folder, shared_folder, tmp_path, run_main):
    """A copy of the test text has its perplexity, and a page of its own."""
    shutil.copytree(folder / "tied", tmp_path / "tied")
    report = (tmp_path / "tied" / "report.html").read_text()
    results = json.loads((tmp_path / "tied" / "results.json").read_text())
    shutil.copy(folder / "text" / "test.txt", tmp_path / "news.txt")
    lines = (tmp_path / "news.txt").read_text().splitlines()
    num_targets = sum(len(line.replace(".", " .").split()) + 1 for line in lines)
    sizes = {"lines": len(lines), "targets": num_targets}
    assert results["texts"]["test"] == {**sizes, "origin": str(shared_folder / "text" / "test.txt")}

    command = ["evaluate", tmp_path / "tied", "--data", tmp_path / "news.txt"]
    status, out, _ = run_main(*command, "--json", tmp_path / "figures.json")
    assert status == 0 and "news.txt ppl" in out and "test ppl" not in out
    assert re.search(
        rf"news.txt +tied +{tmp_path}/news.txt +{len(lines)} +{num_targets}$", out, re.M
    )
    (run,) = json.loads((tmp_path / "figures.json").read_text())["runs"]
    assert run["texts"] == {"news.txt": {**sizes, "origin": str(tmp_path / "news.txt")}}
    assert run["perplexities"]["news.txt"] == pytest.approx(results["test_perplexity"], rel=1e-6)
    page = (tmp_path / "tied" / "report-news.txt.html").read_text()
    assert "news.txt perplexity" in page and "test perplexity" not in page
    assert str(tmp_path / "news.txt") in page and "Models compared" not in page
    assert run_main(*command)[0] == 0
    assert (tmp_path / "tied" / "report-news.txt-2.html").exists()
    assert run_main("evaluate", tmp_path / "tied", "--checkpoint", "last")[0] == 0
    assert (tmp_path / "tied" / "report-checkpoint-last.html").exists()
    assert (tmp_path / "tied" / "report.html").read_text() == report


def test_score_adds_up(folder, capsys):
    assert main(["score", str(folder / "tied"), "the cat sees a unicorn"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = [line.split()[1] for line in lines[:-1]]
    assert words == ["the", "cat", "sees", "a", "<unk>", "<eos>"]
    total, perplexity = re.fullmatch(
        r" *(-[\d.]+)  total of 6 words, perplexity ([\d.]+)", lines[-1]
    ).groups()
    sum_of_words = sum(float(line.split()[0]) for line in lines[:-1])
    assert math.isclose(float(total), sum_of_words, abs_tol=1e-3)
    assert math.isclose(math.exp(-float(total) / 6), float(perplexity), rel_tol=1e-3)


@pytest.mark.slow
def test_score_tells_senses(folder, capsys):
    words = ["score", str(folder / "kerbs"), "the cat sees a unicorn"]
    assert main(words) == 0
    plain = capsys.readouterr().out.splitlines()
    assert main([*words, "--senses"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(plain) and lines[-1] == plain[-1]
    for line, without in zip(lines[:-1], plain[:-1], strict=True):
        assert line.startswith(without)
        senses = re.findall(r"  (\d+):(\d\.\d{3})", line.removeprefix(without))
        assert 1 <= len(senses) <= 4
        assert math.isclose(sum(float(probability) for _, probability in senses), 1, abs_tol=0.003)


@pytest.mark.slow
def test_a_process_of_its_own_answers_the_same_in_any_locale(drill_run, capsys):
    words = ["score", str(drill_run), "the cät", "--format", "json"]
    assert main(words) == 0
    ascii_only = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    result = subprocess.run(
        [sys.executable, "-m", "keras_drill_command", *words],
        capture_output=True,
        env={**os.environ, **ascii_only, "PYTHONCOERCECLOCALE": "0"},
    )
    assert result.returncode == 0, result.stderr
    out = capsys.readouterr().out
    assert "the cät" in out and result.stdout.decode() == out


def test_runs_are_listed(folder, tmp_path, run_main):
    status, out, _ = run_main("runs", folder)
    assert status == 0
    for head in ("tied", "kerbs"):
        assert re.search(rf"{head} +finished +.* 1/1 +\d+\.\d\d +\d+\.\d\d$", out, re.M), out
    assert run_main("runs", tmp_path)[:2] == (0, f"there are no runs in {tmp_path}\n")
    assert "must be a folder that contains runs" in run_main("runs", tmp_path / "none")[2]


@pytest.mark.slow
def test_a_chosen_checkpoint_answers(folder, tmp_path, run_main):
    """After one epoch the last checkpoint holds the best model."""
    step = max(
        int(re.search(r"\d+", path.name)[0]) for path in (folder / "tied/checkpoints").iterdir()
    )
    best = run_main("score", folder / "tied", "the cat")
    assert best[0] == 0
    assert run_main("score", folder / "tied", "the cat", "--checkpoint", "last") == best
    assert run_main("score", folder / "tied", "the cat", "--checkpoint", step) == best
    run = tmp_path / "tied"
    shutil.copytree(folder / "tied", run)
    (run / "model.keras").unlink()  # as after a kill in the first epoch
    words = ["--report", tmp_path / "r.html", "--checkpoint", "last"]
    assert run_main("evaluate", run, *words)[0] == 0
    words = ["analyze", run, "--tokens", "5", "--max-programs", "0", *words]
    assert run_main(*words)[0] == 0
    status, _, err = run_main("generate", run, "the", "--checkpoint", "999999")
    assert status == 1 and "999999" in err and err.count("\n") == 1
    shutil.rmtree(run / "checkpoints")
    status, _, err = run_main("export", run, "--directory", tmp_path, "--checkpoint", "last")
    assert status == 1 and "has no checkpoint" in err


def test_score_reads_a_file(folder, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("the cat\na dog\n")
    assert main(["score", str(folder / "tied"), "--file", str(tmp_path / "a.txt"), "--total"]) == 0
    assert "total of 6 words" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "head, sampler",
    [
        ("drill", "greedy"),
        ("kerbs", "top-p"),
        *(("drill", sampler) for sampler in ("temperature", "top-k", "top-p", "min-p")),
    ],
)
def test_generate(head, sampler, folder, drill_run, capsys):
    words = ["generate", str(folder / head), "the cat", "a", "--sampler", sampler]
    words += ["--max-tokens", "5", "--k", "3", "--seed", "7"]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert main(words) == 0
    assert capsys.readouterr().out == first
    assert first.startswith("the cat") and len(first.splitlines()) == 2


@pytest.mark.slow
def test_export_works_without_the_package(drill_run, tmp_path, capsys):
    words = ["export", str(drill_run), "--directory", str(tmp_path), "--name", "toy"]
    assert main(words) == 0
    path = capsys.readouterr().out.strip()
    assert path == str(tmp_path / "toy" / "1")
    script = "keras_drill/workbench/cli/continue_texts.py"
    said = subprocess.run(
        [sys.executable, "-I", script, path, "the cat"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout
    greedy = ["generate", str(drill_run), "the cat", "--sampler", "greedy"]
    assert main(greedy) == 0
    assert said.strip() == capsys.readouterr().out.strip()
    assert main(words) == 0
    assert capsys.readouterr().out.strip().endswith("/toy/2")


@pytest.mark.slow
def test_weights_in_fewer_bits_are_measured_for_the_card(folder, tmp_path, run_main):
    words = ["export", folder / "tied", "--directory", tmp_path, "--weights", "int8"]
    status, said, err = run_main(*words, "--licence", "CC0-1.0", "--limit", "It is a toy.")
    assert status == 0, err
    extra = Path(said.strip()) / "assets.extra"
    card = json.loads((extra / "model_card.json").read_text())
    results = json.loads((folder / "tied" / "results.json").read_text())
    assert card["trained"] == results["date"] and card["data"]["sizes"] == results["data"]
    assert card["figures"]["test_perplexity"] == results["test_perplexity"]
    assert card["licence"] == "CC0-1.0" and "It is a toy." in card["limits"]
    weights = card["weights"]
    assert weights["kept in"] == "int8" and weights["megabytes, int8"] > 0
    assert weights["perplexity, int8"] == pytest.approx(weights["perplexity, float32"], rel=0.02)
    assert weights["perplexity, float32"] == pytest.approx(results["test_perplexity"], rel=0.1)
    assert "# tied" in (extra / "model_card.md").read_text()


def _empty_folder(path):
    path.mkdir()
    return "Found no training text in the folder"


def _empty_file(path):
    path.write_text("")
    return "The text file is empty"


def _binary(path):
    path.write_bytes(b"\x7fELF\0\0\0")
    return "found a binary"


def _latin1(path):
    path.write_bytes("caf\xe9\n".encode("latin-1") * 9)
    return "is not UTF-8"


def _white_space(path):
    path.write_text(" \n" * 30)
    return "holds no words"


def _cut_gzip(path):
    path.write_bytes(gzip.compress(b"the cat sees a dog .\n" * 99)[:40])
    return "damaged or incomplete"


def _damaged_gzip(path):
    content = bytearray(gzip.compress(os.urandom(9_000).hex().encode() + b"\n"))
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    return "damaged or incomplete"


def _pipe(path):
    os.mkfifo(path)
    return "found a pipe or a device"


def _smaller_than_a_batch(path):
    path.write_text("the cat sees a dog .\n" * 4)
    return "must have at least data.batch_size"


def _no_validation(path):
    path.mkdir()
    (path / "train.txt").write_text("the cat sees a dog\n" * 99)
    return "has no validation text"


def _missing(path):
    return "there is nothing there"


@pytest.mark.parametrize(
    "make",
    [
        _missing,
        _empty_folder,
        _empty_file,
        _binary,
        _latin1,
        _white_space,
        _cut_gzip,
        _damaged_gzip,
        _pipe,
        _smaller_than_a_batch,
        _no_validation,
    ],
)
def test_wrong_text_gets_one_message(make, folder, tmp_path, capsys):
    message = make(tmp_path / "text")
    words = ["train", str(folder / "tied.toml"), "--data", str(tmp_path / "text")]
    assert main([*words, "--run", str(tmp_path / "run")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("keras-drill: error: ") and message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run" / "checkpoints").exists()


def _other_options(run):
    return ["train", str(run.parent / "kerbs.toml"), "--run", str(run)], "holds a run with other"


def _foreign_files(run):
    (run / "config.toml").unlink()
    return ["train", str(run.parent / "kerbs.toml"), "--run", str(run)], "hold"


def _damaged_config(run):
    (run / "config.toml").write_text("[head\n")
    return ["evaluate", str(run)], "is not a TOML file"


def _longer_vocabulary(run):
    (run / "vocabulary.counts").unlink()
    with open(run / "vocabulary.txt", "a") as file:
        file.write("unicorn\n")
    return ["generate", str(run), "the"], "must be the vocabulary of"


def _counts_that_are_none(run):
    (run / "vocabulary.counts").write_text("3\nx\n")
    return ["generate", str(run), "the"], "vocabulary.counts: The file of word counts"


def _damaged_vocabulary(run):
    (run / "vocabulary.txt").write_bytes(b"<unk>\n<eos>\n\xff\n")
    return ["generate", str(run), "the"], "vocabulary.txt: Expected UTF-8 text: byte 0xff in line 3"


def _no_model(run):
    (run / "model.keras").unlink()
    return ["export", str(run)], "has no model yet"


def _damaged_model(run):
    (run / "model.keras").write_bytes(b"no model")
    return ["score", str(run), "the"], "model.keras cannot be loaded"


def _no_run(run):
    return ["score", str(run / "checkpoints"), "the"], "must be the folder of a run, which contains"


def _nothing_to_score(run):
    (run.parent / "a.txt").write_text("\n")
    return [
        "score",
        str(run),
        "--file",
        str(run.parent / "a.txt"),
    ], "must contain at least one text to score"


def _no_sense_contexts(run):
    return ["export", str(run), "--sense-contexts", "3"], "--sense-contexts has no effect"


def _no_senses(run):
    return ["score", str(run), "the", "--senses"], "have no senses"


def _model_in_a_file(run):
    words = ["export", str(run), "--directory", str(run / "config.toml")]
    return words, "config.toml is not a folder"


def _path_as_name(run):
    return ["export", str(run), "--name", "../x"], "the name of a folder, not a path; see"


def _report_in_a_file(run):
    words = ["evaluate", str(run), "--report", str(run / "config.toml" / "a.html")]
    return words, "config.toml is not a folder"


def _report_in_a_device(run):
    return ["analyze", str(run), "--report", os.devnull], "is not a regular file"


def _no_data(run):
    return ["evaluate", str(run), "--data", str(run / "none")], "--data must be an existing path"


def _file_as_run(run):
    return ["score", str(run / "config.toml"), "the"], "config.toml, which is a file"


def _second_file_as_run(run):
    words = ["evaluate", str(run), "--data", str(run / "config.toml"), str(run / "vocabulary.txt")]
    return words, "give each file of a text with its own --data"


def _nothing_as_run(run):
    return ["evaluate", str(run), str(run / "none")], "none, which does not exist"


def _version_twice(run):
    (run.parent / "models" / "toy" / "3").mkdir(parents=True)
    words = ["export", str(run), "--directory", str(run.parent / "models"), "--name", "toy"]
    return [*words, "--version", "3"], "must not exist"


def _unknown_activation(run):
    words = ["train", str(run.parent / "kerbs.toml"), "--run", str(run.parent / "new")]
    return [*words, "--head.activation", "relo"], "relo"


@pytest.mark.parametrize(
    "spoil",
    [
        _other_options,
        _foreign_files,
        _damaged_config,
        _longer_vocabulary,
        _counts_that_are_none,
        _damaged_vocabulary,
        _no_model,
        _damaged_model,
        _no_run,
        _nothing_to_score,
        _no_senses,
        _no_sense_contexts,
        _version_twice,
        _model_in_a_file,
        _path_as_name,
        _report_in_a_file,
        _report_in_a_device,
        _no_data,
        _file_as_run,
        _nothing_as_run,
        _second_file_as_run,
        _unknown_activation,
    ],
)
def test_wrong_runs_get_one_message(spoil, folder, tmp_path, capsys):
    shutil.copytree(folder / "tied", tmp_path / "tied")
    shutil.copy(folder / "kerbs.toml", tmp_path)
    words, message = spoil(tmp_path / "tied")
    capsys.readouterr()
    status = main(words)
    err = capsys.readouterr().err
    assert err.startswith("keras-drill: error: ") and message in err, err
    assert status in (1, 2) and err.count("\n") == 1


@pytest.mark.slow
def test_text_that_was_cut_before_is_warned_of(folder, tmp_path, run_main):
    (tmp_path / "cut.txt").write_text("the cat , a dog <unk> .\n" * 9)
    (tmp_path / "raw.txt").write_text("The cat, a dog.\n" * 9)
    words = ["evaluate", folder / "tied", "--report", tmp_path / "r.html", "--data"]
    err = run_main(*words, tmp_path / "cut.txt")[2]
    assert 'cut.txt looks tokenized already (it contains " ,", "' in err
    assert run_main(*words, tmp_path / "raw.txt") == (0, ANY, "")
