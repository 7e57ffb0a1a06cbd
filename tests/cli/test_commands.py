"""The commands on a tiny run, and wrong input of every kind."""

import gzip
import math
import re
import shutil
import subprocess
import sys

import pytest

from keras_drill.cli.main import main
from tests.training.tiny import tiny_config, write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Trained runs beside each other: `tied`, `drill` and `kerbs`."""
    folder = tmp_path_factory.mktemp("runs")
    data = write_corpus(folder / "text")
    for head in ("tied", "drill", "kerbs"):
        config = tiny_config(data, head_kind=head, senses_interval=13)
        (folder / f"{head}.toml").write_text(config.to_toml())
        assert main(["train", str(folder / f"{head}.toml"), "--run", str(folder / head)]) == 0
    return folder


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


def test_evaluate_compares_runs(folder, tmp_path, capsys):
    runs = [str(folder / head) for head in ("tied", "drill", "kerbs")]
    assert main(["evaluate", *runs, "--report", str(tmp_path / "r.html")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^tied +tied softmax +[\d,]+ +[\d,]+ +\d+\.\d\d +\d+\.\d\d", out, re.M)
    assert "DRILL, depth 1, relu" in out and "KerBS, 3 senses per word" in out
    assert "frequen" in (tmp_path / "r.html").read_text()


def test_evaluate_takes_another_text(folder, tmp_path, capsys):
    (tmp_path / "other.txt").write_text("the cat sees a dog .\n" * 30)
    words = ["evaluate", str(folder / "tied"), "--data", str(tmp_path / "other.txt")]
    assert main([*words, "--report", str(tmp_path / "r.html")]) == 0


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


def test_a_process_of_its_own_answers_the_same(folder, capsys):
    words = ["score", str(folder / "drill"), "the cat"]
    assert main(words) == 0
    result = subprocess.run(
        [sys.executable, "-m", "keras_drill", *words], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == capsys.readouterr().out


def test_score_reads_a_file(folder, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("the cat\na dog\n")
    assert main(["score", str(folder / "tied"), "--file", str(tmp_path / "a.txt"), "--total"]) == 0
    assert "total of 6 words" in capsys.readouterr().out


@pytest.mark.parametrize(
    "head, sampler",
    [
        ("drill", "greedy"),
        ("drill", "temperature"),
        ("drill", "top-k"),
        ("drill", "top-p"),
        ("kerbs", "top-p"),
    ],
)
def test_generate(head, sampler, folder, capsys):
    words = ["generate", str(folder / head), "the cat", "a", "--sampler", sampler]
    words += ["--max-tokens", "5", "--k", "3", "--seed", "7"]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert main(words) == 0
    assert capsys.readouterr().out == first
    assert first.startswith("the cat") and len(first.splitlines()) == 2


def test_export_works_without_the_package(folder, tmp_path, capsys):
    words = ["export", str(folder / "drill"), "--directory", str(tmp_path), "--name", "toy"]
    assert main(words) == 0
    path = capsys.readouterr().out.strip()
    assert path == str(tmp_path / "toy" / "1")
    script = "keras_drill/cli/continue_texts.py"
    said = subprocess.run(
        [sys.executable, "-I", script, path, "the cat"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout
    greedy = ["generate", str(folder / "drill"), "the cat", "--sampler", "greedy"]
    assert main(greedy) == 0
    assert said.strip() == capsys.readouterr().out.strip()
    assert main(words) == 0
    assert capsys.readouterr().out.strip().endswith("/toy/2")


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


def _smaller_than_a_batch(path):
    path.write_text("the cat sees a dog .\n" * 4)
    return "fewer than one batch"


def _no_validation(path):
    path.mkdir()
    (path / "train.txt").write_text("the cat sees a dog .\n" * 99)
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
    return ["train", str(run.parent / "drill.toml"), "--run", str(run)], "holds a run with other"


def _foreign_files(run):
    (run / "config.toml").unlink()
    return ["train", str(run.parent / "drill.toml"), "--run", str(run)], "hold"


def _damaged_config(run):
    (run / "config.toml").write_text("[head\n")
    return ["evaluate", str(run)], "is not a TOML file"


def _longer_vocabulary(run):
    (run / "vocabulary.counts").unlink()
    with open(run / "vocabulary.txt", "a") as file:
        file.write("unicorn\n")
    return ["generate", str(run), "the"], "is not the model's vocabulary"


def _no_model(run):
    (run / "model.keras").unlink()
    return ["export", str(run)], "has no model yet"


def _damaged_model(run):
    (run / "model.keras").write_bytes(b"no model")
    return ["score", str(run), "the"], "model.keras cannot be loaded"


def _no_run(run):
    return ["score", str(run / "logs"), "the"], "is not the folder of a run"


def _nothing_to_score(run):
    (run.parent / "a.txt").write_text("\n")
    return ["score", str(run), "--file", str(run.parent / "a.txt")], "there is no text to score"


def _no_senses(run):
    return ["score", str(run), "the", "--senses"], "have no senses"


def _version_twice(run):
    (run.parent / "models" / "toy" / "3").mkdir(parents=True)
    words = ["export", str(run), "--directory", str(run.parent / "models"), "--name", "toy"]
    return [*words, "--version", "3"], "must not be there yet"


def _unknown_activation(run):
    words = ["train", str(run.parent / "drill.toml"), "--run", str(run.parent / "new")]
    return [*words, "--head.activation", "relo"], "relo"


@pytest.mark.parametrize(
    "spoil",
    [
        _other_options,
        _foreign_files,
        _damaged_config,
        _longer_vocabulary,
        _no_model,
        _damaged_model,
        _no_run,
        _nothing_to_score,
        _no_senses,
        _version_twice,
        _unknown_activation,
    ],
)
def test_wrong_runs_get_one_message(spoil, folder, tmp_path, capsys):
    shutil.copytree(folder / "tied", tmp_path / "tied")
    shutil.copy(folder / "drill.toml", tmp_path)
    words, message = spoil(tmp_path / "tied")
    status = main(words)
    err = capsys.readouterr().err
    assert err.startswith("keras-drill: error: ") and message in err, err
    assert status in (1, 2)
    assert "Traceback" not in err
